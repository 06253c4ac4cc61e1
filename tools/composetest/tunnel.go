//go:build linux

package main

import (
	"io"
	"net"
	"net/http"
	"time"
)

// proxyPort is where the engine, and programs in builds, find the way out of their network.
const proxyPort = "3128"

// tunnel is a proxy for HTTPS: the listener is in the network of the engine, and what it dials in that of the machine.
func tunnel(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only for HTTPS", http.StatusMethodNotAllowed)
		return
	}
	out, err := net.DialTimeout("tcp", r.Host, 30*time.Second)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer out.Close()
	in, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer in.Close()
	if _, err := io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(out, in)
		_ = out.Close()
	}()
	_, _ = io.Copy(in, out)
}
