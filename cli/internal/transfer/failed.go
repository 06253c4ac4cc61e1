package transfer

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
)

// failures is the file of records that failed: the columns of the imported file, and a reason. It can be imported.
type failures struct {
	path   string
	source *source
	file   *os.File // nil until there is one
	size   int64
}

// openFailures begins the file anew, or goes on at a size: what stands after it was written by an import that was
// killed before it could say so.
func openFailures(path string, s *source, size int64) (*failures, error) {
	f := &failures{path: path, source: s, size: size}
	if size == 0 {
		return f, nil
	}
	var err error
	if f.file, err = os.OpenFile(path, os.O_RDWR, 0); err == nil {
		var info os.FileInfo
		if info, err = f.file.Stat(); err == nil && info.Size() < size {
			err = errors.New("it has become shorter")
		}
	}
	if err != nil {
		return nil, failure.Usagef("the records that have failed so far were in %s: %w", path, err)
	}
	if err := f.file.Truncate(size); err != nil {
		return nil, err
	}
	_, err = f.file.Seek(size, io.SeekStart)
	return f, err
}

// add writes a record and why it failed.
func (f *failures) add(r *record, reason string) error {
	if f.path == "" {
		return nil
	}
	if f.file == nil {
		var err error
		if f.file, err = os.OpenFile(f.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600); err != nil {
			return failure.Usagef("the file of failures: %w", err)
		}
		if f.source.format == CSV {
			if err := f.row(f.withReason(f.source.header, reasonColumn)); err != nil {
				return err
			}
		}
	}
	reason = output.Printable(reason)
	if f.source.format == CSV {
		return f.row(f.withReason(r.cells, reason))
	}
	return f.write(append(lineWithReason(r.raw, reason), '\n'))
}

// withReason adds the reason to a row. It comes first, so that a row with too few or too many cells stays one. In a
// file that has failed before, it replaces the last reason.
func (f *failures) withReason(cells []string, reason string) []string {
	if at := slices.Index(f.source.header, reasonColumn); at >= 0 && at < len(cells) {
		cells = slices.Clone(cells)
		cells[at] = reason
		return cells
	}
	return append([]string{reason}, cells...)
}

// lineWithReason adds the reason to a JSON line; a line that is no object is kept as a text.
func lineWithReason(raw []byte, reason string) []byte {
	value, err := output.Parse(raw)
	object, isObject := value.(output.Object)
	if err != nil || !isObject || !json.Valid(raw) {
		return encoded(output.Object{
			{Name: reasonColumn, Value: reason}, {Name: "text", Value: strings.ToValidUTF8(string(raw), "\ufffd")},
		})
	}
	object = slices.DeleteFunc(object, func(m output.Member) bool { return m.Name == reasonColumn })
	return encoded(append(output.Object{{Name: reasonColumn, Value: reason}}, object...))
}

func (f *failures) row(cells []string) error {
	var out strings.Builder
	w := csv.NewWriter(&out)
	if err := w.Write(cells); err != nil {
		return err
	}
	w.Flush()
	return f.write([]byte(out.String()))
}

func (f *failures) write(content []byte) error {
	n, err := f.file.Write(content)
	f.size += int64(n)
	if err != nil {
		return fmt.Errorf("the file of failures: %w", err)
	}
	return nil
}

// sync puts what was added on disk.
func (f *failures) sync() error {
	if f.file == nil {
		return nil
	}
	return f.file.Sync()
}

// reopen begins the file anew.
func (f *failures) reopen() error {
	err := f.close()
	f.file, f.size = nil, 0
	return err
}

func (f *failures) close() error {
	if f.file == nil {
		return nil
	}
	return errors.Join(f.file.Sync(), f.file.Close())
}

// failedPath is the file of failures of an imported file: people.failed.csv of people.csv. That of people.failed.csv is
// people.failed.failed.csv, so that no file is read and written at once.
func failedPath(file, format string) string {
	if file == standardInput {
		return "import.failed." + format
	}
	stem := file
	if at := strings.LastIndexByte(file, '.'); at > strings.LastIndexAny(file, `/\`) {
		stem = file[:at]
	}
	return stem + ".failed." + format
}
