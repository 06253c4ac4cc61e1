package audit

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// ParseTarget reads where entries are handed on to: file:///path, tcp://host:port or tls://host:port. The error says
// what is wrong, and never repeats the text.
func ParseTarget(text string) (Target, error) {
	u, err := url.Parse(text)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("must be file:///path, tcp://host:port or tls://host:port")
	}
	switch {
	case u.Scheme == "file" && u.Host == "" && filepath.IsAbs(u.Path):
		return File(u.Path), nil
	case (u.Scheme == "tcp" || u.Scheme == "tls") && u.Hostname() != "" && u.Port() != "" && u.Path == "":
		return &Syslog{address: u.Host, encrypted: u.Scheme == "tls"}, nil
	}
	return nil, errors.New("must be file:///path, tcp://host:port or tls://host:port")
}

// File is a file to which lines are appended. It is opened each time, so that it may be moved away and is made anew.
type File string

// Send implements Target. The lines are on the disk when it returns.
func (f File) Send(_ context.Context, lines [][]byte) (err error) {
	out, err := os.OpenFile(string(f), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	info, err := out.Stat()
	if err != nil {
		return err
	}
	text := append(bytes.Join(lines, []byte("\n")), '\n')
	if torn(out, info.Size()) {
		text = append([]byte("\n"), text...)
	}
	if _, err := out.Write(text); err != nil {
		return errors.Join(err, out.Truncate(info.Size())) // no half line, such as on a full disk
	}
	return out.Sync()
}

// torn reports whether a file of a size ends in the middle of a line: its writer was killed.
func torn(file io.ReaderAt, size int64) bool {
	if size == 0 {
		return false
	}
	last := make([]byte, 1)
	_, err := file.ReadAt(last, size-1)
	return err == nil && last[0] != '\n'
}

// Syslog sends lines as messages of syslog (RFC 5424), each with its length before it (RFC 6587), over TCP or TLS. The
// protocol has no acknowledgements: what a receiver has not read when it dies is lost.
type Syslog struct {
	address   string
	encrypted bool

	mu   sync.Mutex
	conn net.Conn
}

const (
	dialTime = 10 * time.Second
	sendTime = 30 * time.Second
	// priority is that of facility 13 (log audit) and severity 6 (informational).
	priority = 13*8 + 6
)

// Send implements Target.
func (s *Syslog) Send(ctx context.Context, lines [][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil && closed(s.conn) {
		_ = s.conn.Close()
		s.conn = nil
	}
	if s.conn == nil {
		conn, err := s.dial(ctx)
		if err != nil {
			return err
		}
		s.conn = conn
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "-"
	}
	var text bytes.Buffer
	for _, line := range lines {
		header := fmt.Sprintf("<%d>1 %s %s idplatform %d audit - ", priority,
			time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), host, os.Getpid())
		text.WriteString(strconv.Itoa(len(header)+len(line)) + " " + header)
		text.Write(line)
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(sendTime))
	if _, err := s.conn.Write(text.Bytes()); err != nil {
		_ = s.conn.Close()
		s.conn = nil
		return err
	}
	return nil
}

// closed reports whether the receiver has closed a connection: the first write after that would succeed. Receivers
// say nothing, so there is nothing to read.
func closed(conn net.Conn) bool {
	_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := conn.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func (s *Syslog) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	if s.encrypted {
		return (&tls.Dialer{}).DialContext(ctx, "tcp", s.address)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", s.address)
}
