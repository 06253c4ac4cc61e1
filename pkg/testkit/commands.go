package testkit

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
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
	Older     int    // the same on servers without bulkWrite, older than MongoDB 8.0; 0 means Most
	Do        func(*Client) *Answer
}

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
	commandsFile  = "../../pkg/docstore/commands.md"
	commandsHead  = "\n| Operation | Commands | Bound | Without bulkWrite | Bound |\n|---|---|---|---|---|\n"
	commandsTries = 4 // because a simulated fault makes a transaction run again, with more commands
)

// CountCommands checks that operations send no more commands to MongoDB than allowed, and as many as the service's part
// of the table in pkg/docstore says; IDP_TEST_UPDATE=1 writes the table. The server decides which columns are compared:
// those of MongoDB 8.0 or those of older servers. Do is called with a client of its own, and again if a call took more
// than the table says. The test is skipped if there is no MongoDB.
func (s *Service) CountCommands(service string, c *Client, operations ...Commands) {
	s.t.Helper()
	if s.commands == nil {
		s.t.Skip("commands are counted on MongoDB only")
	}
	update := os.Getenv("IDP_TEST_UPDATE") == "1"
	table, err := os.ReadFile(commandsFile)
	require.NoError(s.t, err)
	heading := "\n## " + service + "\n"
	before, rest, found := strings.Cut(string(table), heading)
	require.True(s.t, found || update, "%s has no part %s", commandsFile, service)
	part, after, more := strings.Cut(rest, "\n## ")
	if more {
		after = "\n## " + after
	}
	got := commandsHead
	for _, o := range operations {
		row := o.rowIn(part)
		told, most := row.column(s.commands.older)
		n := s.fewest(c, o, *told)
		require.LessOrEqual(s.t, n, most, o.Operation)
		*told = strconv.Itoa(n)
		got += row.String()
	}
	if update {
		require.NoError(s.t, os.WriteFile(commandsFile, []byte(before+heading+got+after), 0o644))
		return
	}
	require.Equal(s.t, part, got, "%s is not up to date; IDP_TEST_UPDATE=1 updates it", commandsFile)
}

// fewest is the smallest number of commands that the operation took, of one call or, if that is not what the table
// tells, of several.
func (s *Service) fewest(c *Client, o Commands, told string) int {
	s.t.Helper()
	n := s.countOne(c, o)
	for range commandsTries - 1 {
		if strconv.Itoa(n) == told {
			break
		}
		n = min(n, s.countOne(c, o))
	}
	return n
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
type commandsRow struct {
	Commands
	newer, older string
}

// rowIn finds the operation's row in a part of the table.
func (o Commands) rowIn(part string) *commandsRow {
	if o.Older == 0 {
		o.Older = o.Most
	}
	row := &commandsRow{Commands: o, newer: "–", older: "–"}
	for line := range strings.Lines(part) {
		cells := strings.Split(line, "|")
		if len(cells) > 2 && strings.TrimSpace(cells[1]) == o.Operation {
			row.newer = strings.TrimSpace(cells[2])
			if len(cells) > 5 {
				row.older = strings.TrimSpace(cells[4])
			}
		}
	}
	return row
}

// column is the number and the bound for one kind of server.
func (r *commandsRow) column(older bool) (told *string, most int) {
	if older {
		return &r.older, r.Older
	}
	return &r.newer, r.Most
}

func (r *commandsRow) String() string {
	return fmt.Sprintf("| %s | %s | %d | %s | %d |\n", r.Operation, r.newer, r.Most, r.older, r.Older)
}

func (s *Service) countOne(c *Client, o Commands) int {
	s.t.Helper()
	id := request.NewID()
	answer := o.Do(c.With("X-Request-Id", id))
	require.Equal(s.t, http.StatusOK, answer.Status, "%s: %s", o.Operation, answer.Body)
	return s.CommandsOf(id)
}
