# SPDX-License-Identifier: Apache-2.0
# Draws docs/images/steps.svg from figures of cpu.md: `gnuplot benchmarks/results/steps.gp`, from the repository's root.
$steps << DATA
"text, 128 wide, texts of unequal lengths"   5.89
"text, 128 wide, bfloat16"                   2.43
"text, 128 wide, full rows"                  2.41
"trajectories, full rows"                    2.19
"text, 256 wide, bfloat16"                   1.82
"poses to text, full rows"                   1.67
"text, 256 wide, full rows"                  1.62
"motion, convolutions"                       1.56
"video clips, 3D convolutions"               1.44
DATA
set terminal svg size 760,330 font "sans,13" background "white"
set output "docs/images/steps.svg"
set title "Training steps per second, eager PyTorch = 1, one CPU thread" offset -12,0
set style fill solid 0.85 noborder
set xrange [0:6.5]
set yrange [8.7:-0.7]
set ytics scale 0 nomirror
set xtics 1 nomirror
set grid xtics lt 1 lc rgb "#dddddd"
set border 1
set lmargin 38
unset key
set arrow from 1,-0.7 to 1,8.7 nohead dt 2 lc rgb "#444444" front
set boxwidth 0.7
plot $steps using (0.5 * $2):0:(0.5 * $2):(0.36):ytic(1) with boxxyerror lc rgb "#2f6f9f", \
     $steps using ($2 + 0.08):0:(sprintf("%.2f", $2)) with labels left font ",12"
