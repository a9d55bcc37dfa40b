# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's side of text generation: `generate` of transformers' GPT-2 with a cache, greedy, on one thread. Prompts
of unequal lengths are padded on the left. Answers with new tokens per second of processor time."""
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from steps import parser_of
from turns import take_turns


def main():
    o = parser_of(vocabulary=50257, length=1024, layers=12, heads=12, width=768, prompts=1, fresh=32).parse_args()
    torch.set_num_threads(1)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=o.vocabulary, n_positions=o.length, n_embd=o.width, n_layer=o.layers,
                                       n_head=o.heads, bos_token_id=0, eos_token_id=0)).eval()
    lengths = [16 + row * 7 % 33 for row in range(o.prompts)]
    longest = max(lengths)
    tokens, mask = (torch.zeros(o.prompts, longest, dtype=torch.long) for _ in range(2))
    for row, length in enumerate(lengths):
        tokens[row, longest - length:] = (row * 131 + torch.arange(length) * 977) % o.vocabulary
        mask[row, longest - length:] = 1

    def work():
        with torch.inference_mode():
            out = model.generate(tokens, attention_mask=mask, max_new_tokens=o.fresh, min_new_tokens=o.fresh,
                                 do_sample=False, pad_token_id=0)
        assert out.shape[1] == longest + o.fresh

    take_turns(work, per_call=o.prompts * o.fresh)


if __name__ == "__main__":
    main()
