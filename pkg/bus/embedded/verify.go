package embedded

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/minio/highwayhash"
)

// The files of JetStream's file store, as nats-server 2.15 writes them (server/filestore.go there). The server itself
// cannot check them: it repairs damage by cutting it off, and reports little. A test reads what a real server has
// written, so it notices when an upgrade changes the format.
const (
	recordHeader   = 22 // length, sequence, time, length of the subject
	recordChecksum = 8
	maxRecord      = 32 << 20
	hasHeaders     = 1 << 31 // flag in the length
	isErased       = 1 << 63 // flag in the sequence
	isTombstone    = 1 << 62

	stateMagic   = 11 // in index.db
	consumerSign = 22 // in o.dat

	maxDamages = 20 // reported for one stream
)

// Verification says what Verify checks.
type Verification struct {
	Whole   []string // streams that must exist, and lose only their oldest messages, by age, and those of Dropped
	Streams []string // other streams that must exist

	// Each is called for every message; its error is reported as damage. It may be nil.
	Each func(stream, subject string, body []byte) error

	// Dropped returns from a stream's metadata the place up to which messages were dropped on purpose. It may be nil.
	Dropped func(metadata map[string]string) uint64
}

// Verify reads every file in the folder of a stopped server, and writes none. It returns the number of messages of each
// stream, and an error that names each damaged file and its damage. It takes as long as reading the files. It cannot
// find out that a consumer's state was changed to another possible one or is missing (its messages are then delivered
// again).
func Verify(ctx context.Context, dir string, v Verification) (messages map[string]uint64, err error) {
	messages = map[string]uint64{}
	folders, err := filepath.Glob(filepath.Join(escapeGlob(dir), "jetstream", "*", "streams", "*"))
	if err != nil {
		return nil, err
	}
	var damages []error
	for _, name := range slices.Concat(v.Whole, v.Streams) {
		if !slices.ContainsFunc(folders, func(f string) bool { return filepath.Base(f) == name }) {
			damages = append(damages, fmt.Errorf("%s: the stream %s is missing", filepath.Join(dir, "jetstream"), name))
		}
	}
	for _, folder := range folders {
		s := &streamFiles{dir: folder, name: filepath.Base(folder), now: time.Now(), gone: map[uint64]bool{}}
		s.whole = slices.Contains(v.Whole, s.name)
		s.dropped = v.Dropped
		s.each = func(subject string, body []byte) error {
			messages[s.name]++
			if v.Each == nil {
				return nil
			}
			return v.Each(s.name, subject, body)
		}
		if err := s.verify(ctx); err != nil {
			return messages, errors.Join(append(damages, err)...)
		}
		if s.more > 0 {
			s.damages = append(s.damages, fmt.Errorf("%s: %d more damages", s.dir, s.more))
		}
		damages = append(damages, s.damages...)
	}
	return messages, errors.Join(damages...)
}

// escapeGlob makes a path match only itself.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// streamFiles is a stream's folder that is being verified.
type streamFiles struct {
	dir, name string
	whole     bool
	now       time.Time
	maxAge    time.Duration
	each      func(subject string, body []byte) error
	dropped   func(metadata map[string]string) uint64

	first, last uint64 // sequences of the messages; last includes deleted ones
	gaps        []gap
	gone        map[uint64]bool // deleted by tombstones
	damages     []error
	more        int
}

// gap is a range of sequences without a record.
type gap struct {
	file     string
	from, to uint64
}

func (s *streamFiles) damaged(file, format string, args ...any) {
	if len(s.damages) == maxDamages {
		s.more++
		return
	}
	s.damages = append(s.damages, fmt.Errorf("%s: "+format, append([]any{filepath.Join(s.dir, file)}, args...)...))
}

// verify returns only errors that end the verification: those of a context.
func (s *streamFiles) verify(ctx context.Context) error {
	var config struct {
		Name        string            `json:"name"`
		MaxAge      time.Duration     `json:"max_age"`
		Compression string            `json:"compression"`
		Metadata    map[string]string `json:"metadata"`
	}
	if s.meta(".", s.name, &config); config.Name != "" && config.Name != s.name {
		s.damaged("meta.inf", "names the stream %q", config.Name)
	}
	s.maxAge = config.MaxAge
	if exists(filepath.Join(s.dir, "meta.key")) || config.Compression != "" && config.Compression != "none" {
		s.damaged("meta.inf", "an encrypted or compressed stream cannot be checked")
		return nil
	}
	blocks, err := s.blocks()
	if err != nil {
		s.damaged("msgs", "%v", err)
		return nil
	}
	for _, index := range blocks {
		if err := s.block(ctx, index); err != nil {
			return err
		}
	}
	if s.whole {
		s.reportGaps(config.Metadata)
	}
	s.index()
	consumers, _ := os.ReadDir(filepath.Join(s.dir, "obs"))
	for _, c := range consumers {
		if c.IsDir() {
			s.consumer(c.Name())
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// reason is an error without the path, which is reported anyway.
func reason(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

func digest(key string) hash.Hash64 {
	sum := sha256.Sum256([]byte(key))
	h, err := highwayhash.NewDigest64(sum[:])
	if err != nil {
		panic(err) // cannot happen: the key has the length of a SHA-256 hash
	}
	return h
}

// meta checks a configuration and its checksum.
func (s *streamFiles) meta(folder, key string, into any) {
	file := filepath.Join(folder, "meta.inf")
	text, err := os.ReadFile(filepath.Join(s.dir, file))
	if err != nil {
		s.damaged(file, "%v", reason(err))
		return
	}
	sum, err := os.ReadFile(filepath.Join(s.dir, folder, "meta.sum"))
	if err != nil {
		s.damaged(filepath.Join(folder, "meta.sum"), "%v", reason(err))
		return
	}
	h := digest(key)
	h.Write(text)
	if hex.EncodeToString(h.Sum(nil)) != string(sum) {
		s.damaged(file, "its checksum in meta.sum differs: one of the two files is damaged")
		return
	}
	if err := json.Unmarshal(text, into); err != nil {
		s.damaged(file, "%v", err)
	}
}

// blocks are the numbers of the message files, in order.
func (s *streamFiles) blocks() ([]uint64, error) {
	files, err := os.ReadDir(filepath.Join(s.dir, "msgs"))
	if err != nil {
		return nil, reason(err)
	}
	var blocks []uint64
	for _, f := range files {
		number, isBlock := strings.CutSuffix(f.Name(), ".blk")
		if n, err := strconv.ParseUint(number, 10, 32); isBlock && err == nil {
			blocks = append(blocks, n)
		}
	}
	slices.Sort(blocks)
	return blocks, nil
}

// block reads a message file. What follows a damage cannot be told apart and is skipped.
func (s *streamFiles) block(ctx context.Context, index uint64) error {
	name := filepath.Join("msgs", strconv.FormatUint(index, 10)+".blk")
	file, err := os.Open(filepath.Join(s.dir, name))
	if err != nil {
		s.damaged(name, "%v", reason(err))
		return nil
	}
	defer file.Close() // only read
	var size int64
	if info, err := file.Stat(); err == nil {
		size = info.Size()
	}
	check := digest(s.name + "-" + strconv.FormatUint(index, 10))
	reader := &records{from: bufio.NewReaderSize(file, 1<<20), left: size, check: check}
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s: not read to its end: %w", filepath.Join(s.dir, name), err)
		}
		r, err := reader.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			s.damaged(name, "at byte %d of %d, behind event %d: %v; the rest of the file cannot be read",
				reader.offset, size, s.last, err)
			return nil
		}
		s.take(name, reader.offset, r)
	}
}

// take notes a record.
func (s *streamFiles) take(file string, offset int64, r record) {
	if r.sequence&isTombstone != 0 {
		s.gone[r.sequence&^isTombstone] = true
		s.last = max(s.last, r.sequence&^isTombstone)
		return
	}
	erased := r.sequence&isErased != 0
	sequence := r.sequence &^ isErased
	if sequence > s.last+1 && s.last > 0 {
		s.gaps = append(s.gaps, gap{file, s.last + 1, sequence - 1})
	}
	s.last = max(s.last, sequence)
	if erased || sequence == 0 {
		return
	}
	if s.first == 0 {
		s.first = sequence
	}
	if err := s.each(r.subject, r.body); err != nil {
		s.damaged(file, "at byte %d, event %d: %v", offset, sequence, err)
	}
}

// reportGaps reports sequences that neither exist nor are deleted.
func (s *streamFiles) reportGaps(metadata map[string]string) {
	var upTo uint64
	if s.dropped != nil {
		upTo = s.dropped(metadata)
	}
	for _, g := range s.gaps {
		g.from = max(g.from, upTo+1)
		for g.from <= g.to && s.gone[g.from] {
			g.from++
		}
		if g.from <= g.to {
			s.damaged(g.file, "the events %d to %d are missing before it", g.from, g.to)
		}
	}
}

// index compares the block files with the state of the stream in index.db. The server writes that file from time to
// time and when it stops. After a kill the file is out of date, and the server rebuilds it from the blocks.
func (s *streamFiles) index() {
	const file = "msgs/index.db"
	text, err := os.ReadFile(filepath.Join(s.dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		s.damaged(file, "%v", reason(err))
		return
	}
	const rebuilt = "the next start makes it again"
	end := len(text) - recordChecksum
	if end < 2 || text[0] != stateMagic {
		s.damaged(file, "it is cut off, or not an index; %s", rebuilt)
		return
	}
	h := digest(s.name)
	h.Write(text[:end])
	if !bytes.Equal(h.Sum(nil), text[end:]) {
		s.damaged(file, "%v; %s", errChecksum, rebuilt)
		return
	}
	n := numbers{text[2:end], false}
	messages, _, first, begun, last := n.unsigned(), n.unsigned(), n.unsigned(), n.signed(), n.unsigned()
	switch {
	case n.short:
		s.damaged(file, "it is cut off; %s", rebuilt)
	case last > s.last:
		s.damaged("msgs", "the last event is %d, but there have been %d", s.last, last)
	case s.whole && messages > 0 && first < s.first &&
		(s.maxAge == 0 || time.Unix(0, begun).Add(s.maxAge).After(s.now)): // otherwise they have expired
		s.damaged("msgs", "the events %d to %d are missing", first, s.first-1)
	}
	s.last = max(s.last, last)
}

// consumer checks a consumer's configuration and state.
func (s *streamFiles) consumer(name string) {
	folder := filepath.Join("obs", name)
	var config struct{}
	s.meta(folder, s.name+"/"+name, &config)
	file := filepath.Join(folder, "o.dat")
	text, err := os.ReadFile(filepath.Join(s.dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return // the consumer has received nothing yet
	}
	if err != nil {
		s.damaged(file, "%v", reason(err))
		return
	}
	if len(text) < 2 || text[0] != consumerSign || text[1] < 1 || text[1] > 2 {
		s.damaged(file, "it is cut off, or not a consumer's state")
		return
	}
	n := numbers{text[2:], false}
	_, acknowledged, _, delivered := n.unsigned(), n.unsigned(), n.unsigned(), n.unsigned()
	if pending := n.unsigned(); pending > 0 {
		n.signed()
		for ; pending > 0 && !n.short; pending-- {
			n.unsigned()
			if text[1] == 2 {
				n.unsigned()
			}
			n.signed()
		}
	}
	for again := n.unsigned(); again > 0 && !n.short; again-- {
		n.unsigned()
		n.unsigned()
	}
	switch {
	case n.short:
		s.damaged(file, "it is cut off")
	case len(n.rest) > 0:
		s.damaged(file, "%d bytes too many", len(n.rest))
	case max(acknowledged, delivered) > s.last:
		s.damaged(file, "it is at event %d, but the last is %d", max(acknowledged, delivered), s.last)
	}
}
