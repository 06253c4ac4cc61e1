package transfer

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// all reads a stream to its end and returns the error that it ended with, unless that is io.EOF.
func all(f Format, text []byte) (records []record, err error) {
	r := newReader(f, bytes.NewReader(text), func(string) bool { return true })
	for {
		next, err := r.next()
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return records, err
		}
		records = append(records, next)
	}
}

func TestParseFormat(t *testing.T) {
	t.Parallel()
	for contentType, want := range map[string]Format{
		"application/x-ndjson": NDJSON, "Application/NDJSON; charset=utf-8": NDJSON, "application/jsonl": NDJSON,
		"text/csv": CSV, " text/csv ;header=present": CSV,
		"": "", "application/json": "", "text/plain": "", "text/csvx": "", "text/csv, text/plain": "",
	} {
		got, err := ParseFormat(contentType)
		require.Equal(t, want, got, contentType)
		require.Equal(t, want == "", apperr.KindOf(err) == apperr.UnsupportedMediaType, contentType)
	}
}

// A line of the largest size is read, however the reader splits it.
func TestLongestRecords(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("x", maxLine-1) + "\n"
	records, err := all(NDJSON, []byte(line+line))
	require.NoError(t, err)
	require.Len(t, records, 2)
	_, err = all(NDJSON, []byte("x"+line))
	require.Equal(t, apperr.TooLarge, apperr.KindOf(err))

	records, err = all(CSV, []byte("a\n"+line+line))
	require.NoError(t, err)
	require.Len(t, records, 2)
	_, err = all(CSV, []byte("a\nxx"+line))
	require.Equal(t, apperr.TooLarge, apperr.KindOf(err))
	_, err = all(CSV, []byte("x"+line))
	require.Equal(t, apperr.TooLarge, apperr.KindOf(err), "the header, too")
}

func FuzzNDJSON(f *testing.F) {
	for _, seed := range []string{"", "\n", "{}\n{}", "\ufeff{\"username\":\"李伟\"}\r\n\r\n", "a\x00b\n\xff\xfe\n",
		" \t\n{", "\xef\xbb", "\u2028\n\u0085\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		records, err := all(NDJSON, text)
		require.NoError(t, err)
		var want []string
		for line := range bytes.SplitSeq(bytes.TrimPrefix(text, []byte(byteOrderMark)), []byte("\n")) {
			if line = bytes.TrimSpace(line); len(line) > 0 {
				want = append(want, string(line))
			}
		}
		require.Len(t, records, len(want))
		for i, r := range records {
			require.Equal(t, want[i], string(r.raw))
			require.Empty(t, r.fault)
		}
	})
}

func FuzzCSV(f *testing.F) {
	for _, seed := range []string{
		"", "username", "username,email\na,b\n", "\ufeff\"username\"\r\n李伟\r\n", "a,a\n1,2", "a\n\"1", "a\n1\"2\n",
		"username,locked,version,sys_ext_props\nx,TRUE,7,\"{\"\"k\"\":[1]}\"\n",
		"a,b\n1\n1,2,3\n", "a\n\xc0\xee\n", "\xff\na\n", ",\n,\n", "a\n\x00\n", "a\n\"x\ny\"\n", "a\n<&>\u2028\n",
		"a,b,c\n\xd2,\x8a\n", "version\n{\n", "free_ext_props\n{}{}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		records, err := all(CSV, text)
		if err != nil {
			require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err))
			return
		}
		lines := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(string(text), byteOrderMark))
		plain := csv.NewReader(strings.NewReader(lines))
		plain.FieldsPerRecord = -1
		rows, err := plain.ReadAll()
		require.NoError(t, err)
		require.Len(t, records, max(len(rows)-1, 0))
		for i, r := range records {
			header, row := rows[0], rows[i+1]
			if r.fault != "" {
				require.True(t, len(row) != len(header) || !utf8.ValidString(strings.Join(row, ",")))
				continue
			}
			var object map[string]any
			require.NoError(t, json.Unmarshal(r.raw, &object), "%s", r.raw)
			require.Len(t, row, len(header))
			members := 0
			for column, cell := range row {
				value, has := object[strings.TrimSpace(header[column])]
				require.Equal(t, cell != "", has)
				if text, ok := value.(string); ok {
					require.Equal(t, cell, text, "a text is what stands in the cell")
				}
				if has {
					members++
				}
			}
			require.Len(t, object, members)
		}
	})
}
