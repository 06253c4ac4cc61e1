package outbound

import (
	"net"
	"os"
	"sync/atomic"
	"testing"

	"github.com/idplatform/idplatform/pkg/testkit/leaks"
)

// proxied counts connections to the proxy that the environment names for all these tests: net/http reads it once.
var proxied atomic.Int64

func TestMain(m *testing.M) {
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		if err := os.Setenv(name, "http://"+proxy.Addr().String()); err != nil {
			panic(err)
		}
	}
	_ = os.Unsetenv("NO_PROXY")
	_ = os.Unsetenv("no_proxy")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := proxy.Accept()
			if err != nil {
				return
			}
			proxied.Add(1)
			_ = conn.Close()
		}
	}()
	code := m.Run()
	_ = proxy.Close()
	<-ended
	os.Exit(leaks.Check(code))
}
