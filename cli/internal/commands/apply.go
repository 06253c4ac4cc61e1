package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/plan"
	"github.com/idplatform/idplatform/cli/internal/session"
)

// show prints a plan in the form of -o.
func show(s *session.Session, p *plan.Plan) error {
	printer, err := s.Printer()
	if err != nil {
		return err
	}
	if printer.ForPeople() {
		view := plan.View{Style: s.Style(), All: s.All}
		if s.OutIsTerminal {
			view.Width = s.Width
		}
		p.Print(s.Out, view)
		return nil
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return printer.Body(text, output.View{})
}

// diff makes the command that compares files with what runs.
func diff(a *App) *cobra.Command {
	flags := planFlags{}
	command := &cobra.Command{
		Use: "diff -f DIR", Short: "Show what apply would change", Args: exactly(0),
		Long: "Show what idp apply would create, change and delete, member by member. Each step is tried without\n" +
			"being done, so that what the platform refuses is told by its line. Exit code 10 if there is a difference.",
		Example: "  idp diff -f config\n  idp diff -f base -f acme -o json",
	}
	flags.add(a, command)
	command.RunE = a.run(func(ctx context.Context, s *session.Session, _ []string) error {
		state, err := flags.open(ctx, s)
		if err != nil {
			return err
		}
		p, err := flags.make(ctx, s, state)
		if err != nil {
			return err
		}
		if err := show(s, p); err != nil {
			return err
		}
		switch {
		case p.Refused() != nil:
			return refusedPlan
		case p.Forbidden() != nil:
			return p.Forbidden()
		case len(p.Steps) > 0:
			return failure.ErrNo
		}
		return nil
	})
	return command
}

var refusedPlan = &failure.Error{
	Code: failure.Refused, Err: errors.New("steps of this plan cannot be done: the lines with ! say why"),
}

// apply makes the command that makes the platform as files say.
func apply(a *App) *cobra.Command {
	flags, schema, unlock, secrets := planFlags{}, false, false, ""
	command := &cobra.Command{
		Use: "apply -f DIR", Short: "Make the platform as files say", Args: exactly(0),
		Long: "Make the platform as files say: shows what it would do, asks, and does it in the order of\n" +
			"dependence. Only members in the files are looked at. It is no transaction: if a step fails, what was\n" +
			"done stays, and the same command goes on. A record that somebody changes meanwhile stops it (exit\n" +
			"code 6): plan again.",
		Example: "  idp apply -f config\n  idp apply -f crm.yaml --yes --secrets-to crm.secrets\n  idp apply --schema",
	}
	flags.add(a, command)
	command.Flags().BoolVar(&unlock, "unlock", false, "take away the lock of an apply that was killed")
	command.Flags().BoolVar(&schema, "schema", false, "print the JSON Schema of the documents")
	command.Flags().StringVar(&secrets, "secrets-to", "", "the file to which secrets are added that the platform makes")
	command.RunE = a.run(func(ctx context.Context, s *session.Session, _ []string) error {
		if schema {
			return printSchema(s)
		}
		return flags.locked(ctx, s, unlock, func(state *plan.State) error {
			p, err := flags.make(ctx, s, state)
			if err != nil {
				return err
			}
			possible := p.Refused() == nil && p.Drifted() == nil && p.Forbidden() == nil
			if s.Curl && possible {
				return printCalls(ctx, s, p)
			}
			if err := show(s, p); err != nil {
				return err
			}
			switch {
			case p.Refused() != nil:
				return refusedPlan
			case p.NotAllowed() != nil && !s.DryRun:
				return p.NotAllowed()
			case p.Drifted() != nil:
				return p.Drifted()
			case p.Forbidden() != nil:
				return p.Forbidden()
			case s.DryRun || len(p.Steps) == 0 && state == nil:
				return nil
			}
			return applyPlan(ctx, s, p, secrets)
		})
	})
	return command
}

// locked does something while no other apply of the set can run.
func (f *planFlags) locked(
	ctx context.Context, s *session.Session, unlock bool, do func(*plan.State) error,
) (err error) {
	state, err := f.open(ctx, s)
	if err != nil {
		return err
	}
	if state == nil || s.DryRun || s.Curl {
		return do(state)
	}
	yes := s.Yes
	err = state.Lock(ctx, unlock)
	s.Yes = yes // the name of a protected context has been typed for the lock; the plan is still to be asked about
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, state.Unlock(context.WithoutCancel(ctx))) }()
	if err := state.Reload(ctx); err != nil { // what the apply before has left
		return err
	}
	return do(state)
}

func applyPlan(ctx context.Context, s *session.Session, p *plan.Plan, secrets string) error {
	if len(p.Steps) > 0 {
		if err := s.Confirm(fmt.Sprintf("Do these %d steps", len(p.Steps))); err != nil {
			return err
		}
	}
	keep, err := secretFile(secrets)
	if err != nil {
		return err
	}
	if keep != nil {
		defer keep.Close()
	}
	defer func() {
		for _, note := range p.Notes {
			s.Notef("%s", output.Printable(note))
		}
	}()
	return p.Apply(ctx, func(step *plan.Step, answer map[string]any) error {
		done := map[string]string{plan.Create: "created", plan.Update: "changed", plan.Delete: "deleted"}
		s.Notef("%s %s", done[step.Action], output.Printable(step.Ref.String()))
		return keepSecrets(s, keep, step, answer)
	})
}

// printCalls prints the requests of a plan instead of sending them.
func printCalls(ctx context.Context, s *session.Session, p *plan.Plan) error {
	writes, err := p.Calls(ctx)
	if err != nil {
		return err
	}
	for _, w := range writes {
		call, err := callOf(w, false)
		if err != nil {
			return err
		}
		if err := s.PrintCurl(call); err != nil {
			return err
		}
	}
	return nil
}

func printSchema(s *session.Session) error {
	encoder := json.NewEncoder(s.Out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(plan.Schema())
}
