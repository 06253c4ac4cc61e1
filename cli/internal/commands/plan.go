package commands

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/plan"
	"github.com/idplatform/idplatform/cli/internal/session"
)

// planFlags are the flags that diff and apply share.
type planFlags struct {
	files                   []string
	set, state              string
	rotate, takeOver, prune bool
	cascade, unmanaged      bool
	maxDeletes              int
}

func (f *planFlags) add(a *App, command *cobra.Command) {
	flags := command.Flags()
	flags.StringArrayVarP(&f.files, "file", "f", nil,
		"a file, a folder with files *.yaml, or - for standard input; several times for several (required)")
	flags.BoolVar(&f.rotate, "rotate", false, "send all secrets again")
	flags.StringVar(&f.set, "set", "", "the name of these files: the platform remembers what they made")
	flags.StringVar(&f.state, "state", "", "a file that remembers it, instead of the platform")
	flags.BoolVar(&f.takeOver, "take-over", false, "also change what somebody else has changed since the last apply")
	flags.BoolVar(&f.prune, "prune", false, "delete what the set made and the files no longer have")
	flags.IntVar(&f.maxDeletes, "max-deletes", 10,
		"delete at most so many records, with those that go with others")
	flags.BoolVar(&f.unmanaged, "unmanaged", false,
		"also list the rules of these applications that were made by hand")
	flags.BoolVar(&f.cascade, "cascade", false, "also delete what the set did not make, but goes with what it made")
	a.completeFlag(command, "set", known{"apply sets", setsLike})
}

// open reads the state of the set; nil if the files are no set.
func (f *planFlags) open(ctx context.Context, s *session.Session) (*plan.State, error) {
	switch {
	case len(f.files) == 0:
		return nil, failure.Usagef("-f is needed: a file, or a folder with files *.yaml")
	case s.IdempotencyKey != "" || s.IfVersion != "":
		return nil, failure.Usagef("--idempotency-key and --if-version are for one change; files have many")
	case f.set == "" && f.state == "" && (f.prune || f.takeOver):
		return nil, failure.Usagef("--prune and --take-over are for named sets: --set NAME")
	case f.set == "" && f.state == "":
		return nil, nil
	}
	return plan.OpenState(ctx, &platform{s: s}, f.set, f.state)
}

// make reads the files, compares them with what runs, tries each step, and asks who gains and who loses access.
func (f *planFlags) make(ctx context.Context, s *session.Session, state *plan.State) (*plan.Plan, error) {
	desired, err := plan.Load(f.files, s.In)
	if err != nil {
		return nil, err
	}
	p, err := plan.Make(ctx, &platform{s: s}, desired, plan.Options{
		Rotate: f.rotate, Getenv: s.Getenv,
		State: state, TakeOver: f.takeOver, Prune: f.prune, Unmanaged: f.unmanaged, Cascade: f.cascade,
		MaxDeletes: f.maxDeletes,
	})
	if err != nil {
		return nil, err
	}
	if err := p.Try(ctx); err != nil {
		return nil, err
	}
	return p, p.AssessImpact(ctx)
}
