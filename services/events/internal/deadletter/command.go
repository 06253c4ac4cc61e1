package deadletter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
)

var errUsage = errors.New("dead-letters [CONSUMER]: a line of JSON for each; " +
	"dead-letters replay ID or CONSUMER; dead-letters delete ID")

const atOnce = 200

// Command lists, replays or deletes letters on the machine. Unlike the operations, it leaves no audit log entry.
func Command(ctx context.Context, b *bus.Bus, words []string, out io.Writer) error {
	switch {
	case len(words) == 2 && words[0] == "replay":
		if place, err := strconv.ParseUint(words[1], 10, 63); err == nil {
			return b.ReplayDeadLetter(ctx, place)
		}
		n, err := b.Replay(ctx, words[1])
		_, _ = fmt.Fprintf(out, "%d replayed\n", n)
		return err
	case len(words) == 2 && words[0] == "delete":
		place, err := strconv.ParseUint(words[1], 10, 63)
		if err != nil {
			return apperr.Missing("dead letter")
		}
		return b.DeleteDeadLetter(ctx, place)
	case len(words) == 0:
		return write(ctx, b, "", out)
	case len(words) == 1 && words[0] != "replay" && words[0] != "delete":
		return write(ctx, b, words[0], out)
	}
	return errUsage
}

func write(ctx context.Context, b *bus.Bus, consumer string, out io.Writer) error {
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	for after, more := uint64(0), true; more; {
		var (
			list []bus.DeadLetter
			err  error
		)
		list, _, more, err = b.DeadLetters(ctx, bus.DeadLetters{
			Consumer: consumer, After: after, Limit: atOnce, MaxBytes: maxBytes,
		})
		if err != nil {
			return err
		}
		for _, one := range list {
			if err := lines.Encode(letterOf(one)); err != nil {
				return err
			}
			after = one.Place
		}
		more = more && len(list) > 0
	}
	return nil
}
