package testkit

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

// Change is an operation that several connections repeat at the same time.
type Change struct {
	Name string
	// Do makes the n-th request of all, by the connection with a number from 0. The client is the connection's own.
	Do func(c *Client, connection, n int) *Answer
}

const (
	changesFor  = 2 * time.Second // how long ByConnections repeats each change
	mostClients = 16
	// repeatsAllowed is how many times the commands of one change alone a change beside others may take on average:
	// some transactions meet a simulated fault.
	repeatsAllowed = 1.5
)

// ByConnections measures changes by 1, 4 and 16 clients at the same time. Where they wait for each other shows when
// each command takes some time: on MongoDB, or on the simulated replica set with a delay.
//
//	with-mongo -simulated -delay 4ms go test -run '^$' -bench Connections -benchtime 1x ./services/…
func (s *Service) ByConnections(b *testing.B, c *Client, changes ...Change) {
	b.Helper()
	serial := &atomic.Int64{}
	for _, change := range changes {
		for _, clients := range []int{1, 4, mostClients} {
			b.Run(fmt.Sprintf("%s, %d clients", change.Name, clients), func(b *testing.B) {
				s.byConnections(b, c, change, clients, serial)
			})
		}
	}
}

func (s *Service) byConnections(b *testing.B, c *Client, change Change, clients int, serial *atomic.Int64) {
	b.Helper()
	took := make([][]time.Duration, clients)
	var all sync.WaitGroup
	var refused atomic.Int64
	begin, before := time.Now(), s.commandsSoFar()
	for i := range clients {
		own := c.With("User-Agent", fmt.Sprint("client ", i))
		all.Go(func() {
			for time.Since(begin) < changesFor {
				asked := time.Now()
				answer := change.Do(own, i, int(serial.Add(1)))
				if answer.Status != http.StatusOK {
					refused.Add(1)
				}
				took[i] = append(took[i], time.Since(asked))
			}
		})
	}
	all.Wait()
	lasted, sent := time.Since(begin), s.commandsSoFar()-before
	times := slices.Concat(took...)
	slices.Sort(times)
	require.Zero(b, refused.Load(), "refused changes")
	b.ReportMetric(float64(len(times))/lasted.Seconds(), "changes/s")
	b.ReportMetric(times[len(times)*99/100].Seconds()*1000, "p99-ms")
	if s.commands != nil {
		b.ReportMetric(float64(sent)/float64(len(times)), "commands/change")
	}
	b.ReportMetric(0, "ns/op")
}

// commandsSoFar are the commands of all requests, tasks and the relay.
func (s *Service) commandsSoFar() int {
	if s.commands == nil {
		return 0
	}
	return s.commands.total()
}

// atOnce checks that changes do not make each other's transactions run again: sixteen at the same time send at most
// half as many commands more than sixteen one after the other. So throughput does not fall with connections. The test
// is skipped if there is no MongoDB.
func (s *Service) atOnce(c *Client, changes []Change) {
	s.t.Helper()
	if s.commands == nil {
		s.t.Skip("commands are counted on MongoDB only")
	}
	for _, change := range changes {
		one := func(i, n int) (commands, status int) {
			id := request.NewID()
			answer := change.Do(c.With("X-Request-Id", id), i, n)
			return s.CommandsOf(id), answer.Status
		}
		alone := 0
		for i := range mostClients {
			commands, status := one(i, i)
			require.Equal(s.t, http.StatusOK, status, change.Name)
			alone += commands
		}
		var together atomic.Int64
		answers := basic.AtOnce(mostClients, func(i int) int {
			commands, status := one(i, mostClients+i)
			together.Add(int64(commands))
			return status
		})
		require.Equal(s.t, map[int]int{http.StatusOK: mostClients}, answers, change.Name)
		s.t.Logf("%s: %d commands one after the other, %d at once", change.Name, alone, together.Load())
		require.LessOrEqual(s.t, float64(together.Load()), repeatsAllowed*float64(alone), change.Name)
	}
}
