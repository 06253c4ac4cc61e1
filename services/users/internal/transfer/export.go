package transfer

import (
	"bufio"
	"context"
	"encoding/csv"
	"io"

	"github.com/idplatform/idplatform/services/users/internal/user"
)

// Export writes every user that the filter selects, in the order of ids, in a form that Import reads, without
// passwords.
func (t *Transfers) Export(ctx context.Context, w io.Writer, f Format, filter user.Filter) error {
	out := bufio.NewWriterSize(w, 64<<10)
	write := func(doc user.Doc) error {
		record, err := doc.JSON()
		if err != nil {
			return err
		}
		if _, err := out.Write(record); err != nil {
			return err
		}
		return out.WriteByte('\n')
	}
	if f == CSV {
		table := csv.NewWriter(out)
		if err := table.Write(columns); err != nil {
			return err
		}
		write = func(doc user.Doc) error {
			record, err := doc.JSON()
			if err != nil {
				return err
			}
			row, err := cells(record)
			if err != nil {
				return err
			}
			if err := table.Write(row); err != nil {
				return err
			}
			table.Flush()
			return table.Error()
		}
	}
	if err := t.Users.Each(ctx, filter, write); err != nil {
		return err
	}
	return out.Flush()
}
