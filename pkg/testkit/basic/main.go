// Package basic is what tests of any package use: a clock that they move, a store, a log, golden files. It imports no
// service, web server or NATS server, so that test programs of small packages are linked quickly.
package basic

import (
	"net"
	"testing"

	"github.com/idplatform/idplatform/pkg/outbound/outboundtest"
	"github.com/idplatform/idplatform/pkg/testkit/leaks"
)

// Main runs a package's tests and fails if they leave goroutines behind. Nothing can end a look-up of a name, which may
// outlive its test by seconds where name servers are slow: names that are not in the hosts file are unknown at once.
func Main(m *testing.M) {
	net.DefaultResolver = outboundtest.Resolver([]string{})
	leaks.Main(m)
}
