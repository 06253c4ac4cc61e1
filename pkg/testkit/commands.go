package testkit

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/idplatform/idplatform/pkg/request"
)

// Commands bounds the commands that an operation sends to MongoDB.
type Commands struct {
	Operation string // its name in the table
	Most      int    // the largest allowed number
	Do        func(*Client) *Answer
}

// commandCounter counts the commands of each request. Those of the relay and of tasks belong to none.
type commandCounter struct {
	mu sync.Mutex
	of map[string]int // by request id
}

func (c *commandCounter) monitor() *event.CommandMonitor {
	return &event.CommandMonitor{Started: func(ctx context.Context, _ *event.CommandStartedEvent) {
		if id := request.From(ctx).ID; id != "" {
			c.mu.Lock()
			c.of[id]++
			c.mu.Unlock()
		}
	}}
}

func (c *commandCounter) count(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[id]
}

const (
	commandsFile  = "../../pkg/docstore/commands.md"
	commandsTries = 4 // because a simulated fault makes a transaction run again, with more commands
)

// CountCommands checks that operations send no more commands to MongoDB than allowed, and as many as the service's part
// of the table in pkg/docstore says; IDP_TEST_UPDATE=1 writes the table. Do is called with a client of its own, and
// again if a call took more than the table says. The test is skipped if there is no MongoDB.
func (s *Service) CountCommands(service string, c *Client, operations ...Commands) {
	s.t.Helper()
	if s.commands == nil {
		s.t.Skip("commands are counted on MongoDB only")
	}
	table, err := os.ReadFile(commandsFile)
	require.NoError(s.t, err)
	heading := "\n## " + service + "\n"
	before, rest, found := strings.Cut(string(table), heading)
	require.True(s.t, found, "%s has no part %s", commandsFile, service)
	part, after, more := strings.Cut(rest, "\n## ")
	if more {
		after = "\n## " + after
	}
	got := "\n| Operation | Commands | Bound |\n|---|---|---|\n"
	for _, o := range operations {
		n := 0
		for try := range commandsTries {
			if m := s.countOne(c, o); try == 0 || m < n {
				n = m
			}
			if strings.Contains(part, o.row(n)) {
				break
			}
		}
		require.LessOrEqual(s.t, n, o.Most, o.Operation)
		got += o.row(n)
	}
	if os.Getenv("IDP_TEST_UPDATE") == "1" {
		require.NoError(s.t, os.WriteFile(commandsFile, []byte(before+heading+got+after), 0o644))
		return
	}
	require.Equal(s.t, part, got, "%s is not up to date; IDP_TEST_UPDATE=1 updates it", commandsFile)
}

// CommandsOf returns how many commands the request with the id has sent to MongoDB, including those of repeated
// transactions. The test is skipped if there is no MongoDB.
func (s *Service) CommandsOf(id string) int {
	s.t.Helper()
	if s.commands == nil {
		s.t.Skip("commands are counted on MongoDB only")
	}
	return s.commands.count(id)
}

func (o Commands) row(n int) string { return fmt.Sprintf("| %s | %d | %d |\n", o.Operation, n, o.Most) }

func (s *Service) countOne(c *Client, o Commands) int {
	s.t.Helper()
	id := request.NewID()
	answer := o.Do(c.With("X-Request-Id", id))
	require.Equal(s.t, http.StatusOK, answer.Status, "%s: %s", o.Operation, answer.Body)
	return s.CommandsOf(id)
}
