package basic

import (
	"context"
	"errors"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// twice is an engine whose transactions all run again, as MongoDB's do after a conflict: what the first run has left in
// memory must not matter to the second. make test-twice plays the services on it.
type twice struct{ docstore.Engine }

var errAgain = errors.New("the transaction runs again")

func (e twice) Write(ctx context.Context, fn func(docstore.EngineTx) error) error {
	err := e.Engine.Write(ctx, func(tx docstore.EngineTx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return errAgain
	})
	if !errors.Is(err, errAgain) {
		return err
	}
	return e.Engine.Write(ctx, fn)
}
