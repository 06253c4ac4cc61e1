package mongostore

import (
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// fakeServer is the primary of a replica set, as far as the driver can see. It stores no data: the test answers each
// command, or it gets a plain success.
type fakeServer struct {
	listener net.Listener
	answer   func(command string, body bson.Raw) bson.D // nil means plain success; calls do not overlap
	hello    bson.D                                     // its answer to hello

	mu       sync.Mutex
	commands []bson.Raw // in the order of arrival, without monitoring
	conns    map[net.Conn]bool
	serving  sync.WaitGroup
}

func newFakeServer(t *testing.T, answer func(command string, body bson.Raw) bson.D) *fakeServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &fakeServer{listener: listener, answer: answer, conns: map[net.Conn]bool{}}
	s.hello = bson.D{{Key: "setName", Value: "rs0"}, {Key: "hosts", Value: bson.A{s.address()}},
		{Key: "me", Value: s.address()}}
	s.serving.Go(s.accept)
	t.Cleanup(s.close)
	return s
}

func (s *fakeServer) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.serving.Wait()
}

func (s *fakeServer) address() string { return s.listener.Addr().String() }

// open connects an engine. The engine is closed before the server.
func (s *fakeServer) open(t *testing.T) *Engine {
	t.Helper()
	e, err := Open(t.Context(), s.options(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	s.forget()
	return e
}

func (s *fakeServer) options(t *testing.T) Options {
	return Options{
		URI: "mongodb://" + s.address() + "/?directConnection=true&heartbeatFrequencyMS=600000", Database: "db",
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Timeout: time.Minute, Select: time.Minute,
	}
}

func (s *fakeServer) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands = nil
}

// names are the names of the commands, in the order of arrival.
func (s *fakeServer) names() []string {
	var names []string
	for _, c := range s.all() {
		names = append(names, commandName(c))
	}
	return names
}

func (s *fakeServer) all() []bson.Raw {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands)
}

// the returns the only command with a name.
func (s *fakeServer) the(t *testing.T, name string) bson.Raw {
	t.Helper()
	var found []bson.Raw
	for _, c := range s.all() {
		if commandName(c) == name {
			found = append(found, c)
		}
	}
	require.Len(t, found, 1, name)
	return found[0]
}

func commandName(body bson.Raw) string { return body.Index(0).Key() }

func (s *fakeServer) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[conn] = true
		s.mu.Unlock()
		s.serving.Go(func() {
			s.serve(conn)
			_ = conn.Close()
		})
	}
}

// The wire protocol's opcodes.
const (
	opReply = 1
	opQuery = 2004
	opMsg   = 2013
)

func (s *fakeServer) serve(conn net.Conn) {
	for {
		header := make([]byte, 16)
		if _, err := io.ReadFull(conn, header); err != nil {
			return
		}
		body := make([]byte, binary.LittleEndian.Uint32(header)-16)
		if _, err := io.ReadFull(conn, body); err != nil {
			return
		}
		request, opcode := header[4:8], binary.LittleEndian.Uint32(header[12:])
		command, err := parse(opcode, body)
		if err != nil {
			return
		}
		reply := s.reply(command)
		if reply == nil {
			return // as if the server died
		}
		if _, err := conn.Write(wireMessage(opcode, request, reply)); err != nil {
			return
		}
	}
}

func parse(opcode uint32, body []byte) (bson.Raw, error) {
	switch opcode {
	case opQuery: // flags, "db.$cmd\0", skip, limit, document
		end := slices.Index(body[4:], 0)
		return bson.Raw(body[4+end+1+8:]), nil
	case opMsg: // flags, then sections: a document, and sequences of documents that belong to a member of it
		var command bson.D
		for rest := body[4:]; len(rest) > 0; {
			size := binary.LittleEndian.Uint32(rest[1:])
			section := rest[1 : 1+size]
			if rest[0] == 0 {
				if err := bson.Unmarshal(section, &command); err != nil {
					return nil, err
				}
			} else {
				name := section[4 : 4+slices.Index(section[4:], 0)]
				var documents bson.A
				for d := section[4+len(name)+1:]; len(d) > 0; d = d[binary.LittleEndian.Uint32(d):] {
					documents = append(documents, bson.Raw(d[:binary.LittleEndian.Uint32(d)]))
				}
				command = append(command, bson.E{Key: string(name), Value: documents})
			}
			rest = rest[1+size:]
		}
		return bson.Marshal(command)
	}
	return nil, errors.New("unknown opcode")
}

func wireMessage(opcode uint32, to []byte, reply bson.Raw) []byte {
	var m []byte
	m = binary.LittleEndian.AppendUint32(m, 0)
	m = binary.LittleEndian.AppendUint32(m, 1)
	m = append(m, to...)
	if opcode == opQuery {
		m = binary.LittleEndian.AppendUint32(m, opReply)
		m = append(m, make([]byte, 16)...) // flags, cursor, start
		m = binary.LittleEndian.AppendUint32(m, 1)
	} else {
		m = binary.LittleEndian.AppendUint32(m, opMsg)
		m = append(m, make([]byte, 5)...) // flags, and the section's kind
	}
	m = append(m, reply...)
	binary.LittleEndian.PutUint32(m, uint32(len(m)))
	return m
}

// dead stands for no answer: the connection breaks.
var dead = bson.D{{Key: "dead", Value: true}}

func (s *fakeServer) reply(command bson.Raw) bson.Raw {
	name := commandName(command)
	var answer bson.D
	switch name {
	case "hello", "isMaster", "ismaster":
		answer = append(bson.D{
			{Key: "helloOk", Value: true}, {Key: "isWritablePrimary", Value: true}, {Key: "ismaster", Value: true},
			{Key: "maxBsonObjectSize", Value: 16 << 20}, {Key: "maxMessageSizeBytes", Value: 48_000_000},
			{Key: "maxWriteBatchSize", Value: 100_000},
			{Key: "logicalSessionTimeoutMinutes", Value: 30}, {Key: "minWireVersion", Value: 0},
			{Key: "maxWireVersion", Value: 25},
		}, s.hello...)
	default:
		s.mu.Lock()
		s.commands = append(s.commands, command)
		if s.answer != nil {
			answer = s.answer(name, command)
		}
		s.mu.Unlock()
		if answer == nil {
			answer = plain(name, command)
		}
	}
	if len(answer) > 0 && answer[0].Key == "dead" {
		return nil
	}
	if answer[len(answer)-1].Key != "ok" {
		answer = append(slices.Clip(answer), bson.E{Key: "ok", Value: 1})
	}
	raw, err := bson.Marshal(answer)
	if err != nil {
		panic(err) // a mistake in the test
	}
	return raw
}

func plain(name string, body bson.Raw) bson.D {
	switch name {
	case "bulkWrite":
		return written(body)
	case "find", "aggregate", "listIndexes":
		return found()
	case "findAndModify":
		return bson.D{{Key: "value", Value: bson.D{{Key: "value", Value: int64(7)}}}}
	case "delete":
		return bson.D{{Key: "n", Value: 0}}
	}
	return bson.D{{Key: "n", Value: 1}}
}

// written is the answer to a bulkWrite whose statements all found their documents.
func written(body bson.Raw) bson.D {
	answer := found()
	ops, _ := body.Lookup("ops").Array().Values()
	counted := map[string]string{"insert": "nInserted", "update": "nMatched", "delete": "nDeleted"}
	counts := map[string]int32{"nErrors": 0}
	for _, op := range ops {
		name := counted[commandName(op.Document())]
		if keys, ok := op.Document().Lookup("filter", "_id", "$in").ArrayOK(); ok {
			all, _ := keys.Values()
			counts[name] += int32(len(all))
		} else {
			counts[name]++
		}
	}
	for name, n := range counts {
		answer = append(answer, bson.E{Key: name, Value: n})
	}
	return answer
}

// refusing is the answer to a bulkWrite with a refused statement.
func refusing(index int, refusal ...bson.E) bson.D {
	failed := append(bson.D{{Key: "ok", Value: 0.0}, {Key: "idx", Value: int32(index)}}, refusal...)
	return append(found(failed), bson.E{Key: "nErrors", Value: int32(1)})
}

// operations are the operations of a bulkWrite, each as "insert things".
func operations(body bson.Raw) []string {
	var list []string
	if commandName(body) != "bulkWrite" {
		return nil
	}
	ops, _ := body.Lookup("ops").Array().Values()
	names, _ := body.Lookup("nsInfo").Array().Values()
	for _, op := range ops {
		kind := commandName(op.Document())
		ns := names[op.Document().Lookup(kind).AsInt64()].Document().Lookup("ns").StringValue()
		list = append(list, kind+" "+strings.TrimPrefix(ns, "db."))
	}
	return list
}

// found is a cursor's first and only batch.
func found(documents ...any) bson.D {
	return bson.D{{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: "db.c"},
		{Key: "firstBatch", Value: append(bson.A{}, documents...)}}}}
}

// failed is a command's error.
func failed(code int, labels ...string) bson.D {
	return bson.D{{Key: "code", Value: code}, {Key: "errmsg", Value: "refused"},
		{Key: "errorLabels", Value: append([]string{}, labels...)}, {Key: "ok", Value: 0}}
}
