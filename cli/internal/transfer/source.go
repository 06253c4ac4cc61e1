package transfer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/idplatform/idplatform/cli/internal/failure"
)

// The formats of files.
const (
	CSV   = "csv"
	JSONL = "jsonl"
)

// standardInput is the name of the file that stands for it.
const standardInput = "-"

// formatOf is the format that a file's name tells; "" if it tells none.
func formatOf(name string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".csv":
		return CSV
	case ".jsonl", ".ndjson":
		return JSONL
	}
	return ""
}

// source is the file that is imported.
type source struct {
	name   string // for people
	format string
	file   *os.File
	layout *layout

	size    int64
	sum     string // SHA-256
	records int64
	header  []string // of a table
	targets []target
	start   int64 // where the records begin, after a mark of the byte order and the header
}

// openSource opens a file. Standard input is copied to a temporary file first, because an import reads more than once.
func openSource(name, format string, in io.Reader, l *layout) (*source, error) {
	s := &source{name: name, format: format, layout: l}
	if s.format == "" {
		if s.format = formatOf(name); s.format == "" && name == standardInput {
			s.format = CSV
		}
	}
	if s.format == "" {
		return nil, failure.Usagef("%s: its name does not tell its format: --format csv or --format jsonl", name)
	}
	if err := oneOf("--format", s.format, []string{CSV, JSONL}); err != nil {
		return nil, err
	}
	var err error
	if name == standardInput {
		s.name = "standard input"
		s.file, err = spool(in)
	} else if s.file, err = os.Open(name); err != nil {
		return nil, failure.Usagef("%w", err)
	}
	if err != nil {
		return nil, err
	}
	if err := s.begin(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// spool copies standard input to a file that disappears with the program, however that ends.
func spool(in io.Reader) (*os.File, error) {
	file, err := os.CreateTemp("", "idp-import-*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(file.Name()) // Windows removes it only when it is closed
	if _, err := io.Copy(file, in); err != nil {
		return nil, errors.Join(fmt.Errorf("standard input: %w", err), file.Close())
	}
	return file, nil
}

func (s *source) close() error {
	err := s.file.Close()
	if s.name == "standard input" {
		_ = os.Remove(s.file.Name()) // see spool
	}
	return err
}

// begin reads what stands before the records.
func (s *source) begin() error {
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return failure.Usagef("%s is a folder", s.name)
	}
	s.size = info.Size()
	var mark [3]byte
	n, _ := s.file.ReadAt(mark[:], 0) // a shorter file has no mark
	switch {
	case bytes.Equal(mark[:n], []byte("\ufeff")):
		s.start = 3
	case n > 1 && (mark[0] == 0xff && mark[1] == 0xfe || mark[0] == 0xfe && mark[1] == 0xff):
		return failure.Usagef("%s is UTF-16: save it as UTF-8", s.name)
	}
	if s.format == JSONL {
		return nil
	}
	table := s.table(s.start, 1)
	s.header, err = table.row()
	if errors.Is(err, io.EOF) {
		return failure.Usagef("%s is empty: a table begins with the names of its columns", s.name)
	}
	if err != nil {
		return err
	}
	for i := range s.header {
		s.header[i] = strings.TrimSpace(s.header[i])
	}
	s.start += table.csv.InputOffset()
	if s.targets, err = s.layout.header(s.header); err != nil {
		return failure.Usagef("%s:\n  %w", s.name, err)
	}
	return nil
}

// survey reads the whole file once: it finds the records that no import could read before anything is sent, counts
// them, and takes the fingerprint of the file. see is called for each record. The result is the line at which the bytes
// after the offset begin.
func (s *source) survey(offset int64, see func(*record)) (line int64, err error) {
	hash, counter := sha256.New(), &lineCounter{until: offset, line: 1}
	all := io.TeeReader(io.NewSectionReader(s.file, 0, s.size), io.MultiWriter(hash, counter))
	if _, err := io.CopyN(io.Discard, all, s.start); err != nil {
		return 0, err
	}
	records := s.reader(all, place{Offset: s.start}, counter.line)
	for {
		r, err := records.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		s.records++
		if see != nil {
			see(r)
		}
	}
	s.sum = hex.EncodeToString(hash.Sum(nil))
	return counter.line, nil
}

// lineCounter counts the lines that begin before an offset.
type lineCounter struct{ seen, until, line int64 }

func (c *lineCounter) Write(p []byte) (int, error) {
	before := p[:max(0, min(int64(len(p)), c.until-c.seen))]
	c.seen += int64(len(p))
	c.line += int64(bytes.Count(before, []byte("\n")))
	return len(p), nil
}

// place is where a record begins.
type place struct {
	Offset int64 `json:"offset"`
	Number int64 `json:"records"` // before it
}

// first is the place of the first record.
func (s *source) first() place { return place{Offset: s.start} }

// from reads the records from a place on. Each call has a reader of its own.
func (s *source) from(p place, line int64) reader {
	return s.reader(io.NewSectionReader(s.file, p.Offset, s.size-p.Offset), p, line)
}
