package testkit

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/idplatform/idplatform/pkg/request"
)

// commandCounter counts the commands of each request, and of all. Those of the relay and of tasks belong to no request.
type commandCounter struct {
	mu    sync.Mutex
	of    map[string]int // by request id
	all   int
	older bool // the server has no bulkWrite
}

const bulkWriteWire = 25 // the wire version of MongoDB 8.0

func (c *commandCounter) monitor() *event.CommandMonitor {
	return &event.CommandMonitor{
		Started: func(ctx context.Context, _ *event.CommandStartedEvent) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.all++
			if id := request.From(ctx).ID; id != "" {
				c.of[id]++
			}
		},
		Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) {
			if e.CommandName != "hello" { // the engine asks it when it opens
				return
			}
			wire, _ := e.Reply.Lookup("maxWireVersion").AsInt64OK()
			c.mu.Lock()
			defer c.mu.Unlock()
			c.older = wire < bulkWriteWire
		},
	}
}

func (c *commandCounter) count(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[id]
}

func (c *commandCounter) total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

const (
	commandsFile  = "pkg/docstore/commands.md"
	commandsHead  = "\n| Operation | Commands | Without bulkWrite |\n|---|---|---|\n"
	commandsTries = 12 // a simulated fault, or a task that writes the same document, makes a transaction run again
)

// commandsPath is the path of the table, from the folder of any package.
func commandsPath(t testing.TB) string {
	t.Helper()
	for up, n := "", 0; n < 8; up, n = up+"../", n+1 {
		if _, err := os.Stat(up + commandsFile); err == nil {
			return up + commandsFile
		}
	}
	require.Fail(t, "there is no "+commandsFile+" above the package")
	return ""
}

// compare counts the commands of the rows and checks that they are those of a service's part of the table;
// IDP_TEST_UPDATE=1 writes the table. The server decides which column is compared: that of MongoDB 8.0 or that of older
// servers. A row is called again if a call took more than the table says.
func (s *Service) compare(service string, c *Client, rows []Commands) {
	s.t.Helper()
	update, file := os.Getenv("IDP_TEST_UPDATE") == "1", commandsPath(s.t)
	table, err := os.ReadFile(file)
	require.NoError(s.t, err)
	heading := "\n## " + service + "\n"
	before, rest, found := strings.Cut(string(table), heading)
	require.True(s.t, found || update, "%s has no part %s", commandsFile, service)
	part, after, more := strings.Cut(rest, "\n## ")
	if more {
		after = "\n## " + after
	}
	got := commandsHead
	for _, r := range rows {
		row := rowIn(part, r.Operation)
		told := row.column(s.commands.older)
		*told = strconv.Itoa(s.fewest(c, r, *told))
		got += row.String()
	}
	if update {
		require.NoError(s.t, os.WriteFile(file, []byte(before+heading+got+after), 0o644))
		return
	}
	require.Equal(s.t, part, got, "%s is not up to date; IDP_TEST_UPDATE=1 updates it", commandsFile)
}

// fewest is the smallest number of commands that the operation took, of one call or, if that is not what the table
// tells, of several.
func (s *Service) fewest(c *Client, r Commands, told string) int {
	s.t.Helper()
	n := s.countOne(c, r)
	for range commandsTries - 1 {
		if strconv.Itoa(n) == told {
			break
		}
		n = min(n, s.countOne(c, r))
	}
	return n
}

func (s *Service) countOne(c *Client, r Commands) int {
	s.t.Helper()
	id := request.NewID()
	r.call(c.With("X-Request-Id", id))
	return s.CommandsOf(id)
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

// commandsRow is a row of the table. A number that was never counted is "–".
type commandsRow struct{ operation, newer, older string }

// rowIn finds an operation's row in a part of the table.
func rowIn(part, operation string) *commandsRow {
	row := &commandsRow{operation: operation, newer: "–", older: "–"}
	for line := range strings.Lines(part) {
		cells := strings.Split(line, "|")
		if len(cells) > 3 && strings.TrimSpace(cells[1]) == operation {
			row.newer, row.older = strings.TrimSpace(cells[2]), strings.TrimSpace(cells[3])
		}
	}
	return row
}

// column is the number for one kind of server.
func (r *commandsRow) column(older bool) *string {
	if older {
		return &r.older
	}
	return &r.newer
}

func (r *commandsRow) String() string {
	return fmt.Sprintf("| %s | %s | %s |\n", r.operation, r.newer, r.older)
}
