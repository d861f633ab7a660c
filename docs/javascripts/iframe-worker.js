// SPDX-License-Identifier: BSD-3-Clause
// The search of the site runs in a Worker, which browsers refuse to start from a file. For pages that are opened as
// files, a hidden frame takes its place: it loads the same script, and both sides exchange the same messages.
if (location.protocol === "file:") {
  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.frame = frame;
      const inside = frame.contentWindow;
      inside.document.open();
      inside.document.write("<!doctype html><body></body>");
      inside.document.close();
      inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      inside.importScripts = async (...urls) => {
        for (const each of urls) {
          await new Promise((resolve, reject) => {
            const script = inside.document.createElement("script");
            script.src = each;
            script.onload = resolve;
            script.onerror = reject;
            inside.document.body.appendChild(script);
          });
        }
      };
      this.loaded = inside.importScripts(String(url));
    }
    postMessage(data) {
      this.loaded.then(() => {
        this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
      });
    }
    terminate() {
      this.frame.remove();
    }
  }
  window.IFrameWorker = IFrameWorker;
  window.Worker = IFrameWorker;
}
