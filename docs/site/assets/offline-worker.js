// Browsers start no worker from a file:// page. There, a worker's script runs in a hidden frame, so
// that the search works on a copy of the site without a server. The site's pages load this first.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.onmessage = this.onerror = this.onmessageerror = null;
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const page = this.frame.contentDocument;
      page.open();
      this.inner = this.frame.contentWindow;
      // What the script sends goes to the page; what the page sends waits until the script is there.
      this.inner.postMessage = (data) => setTimeout(() => this.onmessage?.({ data }));
      const script = page.createElement("script");
      script.src = new URL(url, location.href).href;
      script.onload = () => {
        for (const data of this.waiting) this.deliver(data);
        this.waiting = null;
      };
      script.onerror = () => this.onerror?.(new Event("error"));
      page.write("<!doctype html><title>worker</title>");
      page.close();
      page.head.append(script);
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.deliver(data);
    }

    deliver(data) {
      setTimeout(() => this.inner?.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.inner = null;
      this.frame.remove();
    }
  };
}
