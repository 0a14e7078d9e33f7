// A page that is opened from a folder may start no worker, and the search of the site runs in one: here it runs in a
// hidden frame instead. Elsewhere this does nothing.
"use strict";

if (location.protocol === "file:") {
  class FrameWorker extends EventTarget {
    constructor(address) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.document.write("<body></body>");
      inside.document.close();
      inside.postMessage = (data) => this.tell(data);
      inside.importScripts = (...addresses) =>
        addresses.reduce((before, one) => before.then(() => FrameWorker.load(inside, one)), Promise.resolve());
      this.ready = FrameWorker.load(inside, address);
    }

    static load(inside, address) {
      return new Promise((done) => {
        const script = inside.document.createElement("script");
        script.src = address;
        script.onload = done;
        inside.document.body.append(script);
      });
    }

    tell(data) {
      const message = new MessageEvent("message", { data });
      this.dispatchEvent(message);
      if (this.onmessage) this.onmessage(message);
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.Worker = FrameWorker;
}
