package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/plan"
	"github.com/idplatform/idplatform/cli/internal/session"
)

// masked is what the platform shows in place of a secret.
const masked = "******"

// secretFile opens the file for secrets before anything is made, so that none is lost.
func secretFile(path string) (*os.File, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, failure.Usagef("--secrets-to: %w", err)
	}
	if info, err := file.Stat(); err == nil && isShared(info) {
		file.Close()
		return nil, failure.Usagef("--secrets-to %s: others can read it: chmod 600 %s", path, path)
	}
	return file, nil
}

// isShared reports whether others can read a file. On Windows its mode does not say so.
func isShared(file os.FileInfo) bool {
	return runtime.GOOS != "windows" && file.Mode().Perm()&0o077 != 0 && file.Mode().IsRegular()
}

// keepSecrets writes the secrets that the platform made for a new record, a line each.
func keepSecrets(s *session.Session, file *os.File, step *plan.Step, answer map[string]any) error {
	made := plan.SecretsOf(step, answer)
	if len(made) == 0 {
		return nil
	}
	if file == nil {
		s.Notef("  its secret was made and is not shown: --secrets-to FILE keeps it, or make a new one")
		return nil
	}
	made["record"] = step.Ref.String()
	line, err := json.Marshal(made)
	if err != nil {
		return err
	}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		if kept, err := os.ReadFile(file.Name()); err == nil && bytes.Contains(kept, line) {
			return nil // by an apply that was killed right after
		}
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Sync())
}

// once are secrets that the platform makes and shows in one answer only.
type once struct {
	kind    string   // of the record: Application
	secrets []string // members of the answer
	with    []string // members that go into the file beside them
}

// flag adds the flag that keeps the secrets out of the terminal.
func (o *once) flag(command *cobra.Command) *string {
	path := ""
	if o != nil {
		command.Flags().StringVar(&path, "secrets-to", "",
			"add the secret to this file (mode 0600), and print "+masked+" in its place")
	}
	return &path
}

// run sends a call and prints the answer. Its secrets go to the file, if there is one. Those of a dry run are none: the
// platform makes others when it is done.
func (o *once) run(ctx context.Context, s *session.Session, call *session.Call, path string) error {
	if o == nil || s.Curl {
		return s.Run(ctx, call)
	}
	if s.DryRun {
		path = ""
	}
	file, err := secretFile(path)
	if err != nil {
		return err
	}
	if file != nil {
		defer file.Close()
	}
	call.Answer = func(body []byte) ([]byte, error) {
		value, err := output.Parse(body)
		answer, isObject := value.(output.Object)
		if err != nil || !isObject {
			return body, nil // it is told when it is printed
		}
		hidden, kept := answer, map[string]string{"record": o.kind + " " + call.What}
		for _, name := range o.secrets {
			if secret := answer.Text(name); secret != "" && secret != masked {
				hidden, kept[name] = hidden.With(name, masked), secret
			}
		}
		if len(kept) == 1 || file == nil && !s.DryRun {
			return body, nil
		}
		for _, name := range o.with {
			kept[name] = answer.Text(name)
		}
		if file != nil {
			if err := json.NewEncoder(file).Encode(kept); err != nil {
				return body, &failure.Error{Code: failure.Partly, Err: fmt.Errorf(
					"it is done, but the secret, which is printed above, is not in the file: %w", err)}
			}
			s.Notef("the secret is in %s", path)
		}
		text, err := json.Marshal(hidden)
		return text, err
	}
	return s.Run(ctx, call)
}
