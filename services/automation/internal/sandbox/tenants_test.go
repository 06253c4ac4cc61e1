package sandbox

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// workerOf runs a call for a tenant and returns the worker that ran it.
func workerOf(t *testing.T, p *Pool, tenant string) *process {
	t.Helper()
	r, err := p.Run(of(t, tenant), js(`function main() {}`))
	require.NoError(t, err)
	require.Equal(t, Succeeded, r.Outcome)
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.idle[len(p.idle)-1]
	require.Equal(t, tenant, w.tenant)
	return w
}

// A worker runs the code of one tenant. Another one that needs its place gets a new process, and the first has ended.
func TestWorkersBelongToOneTenant(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	acme, globex := workerOf(t, p, "acme"), workerOf(t, p, "globex")
	require.Same(t, acme, workerOf(t, p, "acme"), "there is room for both")
	require.Same(t, globex, workerOf(t, p, "globex"))
	initech := workerOf(t, p, "initech")
	<-acme.exited // it was idle for longest
	require.Same(t, globex, workerOf(t, p, "globex"))
	require.NotSame(t, acme, workerOf(t, p, "acme"))
	<-initech.exited
	wait.Until(t, func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.all) == 2 })
	require.Zero(t, p.taken)
}
