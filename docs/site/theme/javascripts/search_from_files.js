// SPDX-License-Identifier: Apache-2.0
// Pages opened from the file system can neither start a worker nor fetch the search index. For these pages, this script
// runs the worker's program in a hidden frame and loads the index as a script.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(program) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.loaded = new Promise((resolve, reject) => {
        const script = this.inside.document.createElement("script");
        script.onload = resolve;
        script.onerror = reject;
        script.src = new URL(program, location.href).href;
        this.inside.document.body.append(script);
      });
    }
    postMessage(data) {
      this.loaded.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
  document.write(`<script src="${site_root}/search/search_index.js"></script>`);
}
