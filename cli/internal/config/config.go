// Package config keeps the contexts: which servers there are, and how to sign in to them.
package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/gofrs/flock"
	"go.yaml.in/yaml/v3"

	"github.com/idplatform/idplatform/cli/internal/failure"
)

// File is the configuration file.
type File struct {
	Current  string              `yaml:"current,omitempty"`
	Contexts map[string]*Context `yaml:"contexts,omitempty"`
}

// Context is a server, a tenant, and one way to sign in.
type Context struct {
	URL       string `yaml:"url"`
	Tenant    string `yaml:"tenant,omitempty"` // the credential's own, or another one that it may name
	Protected bool   `yaml:"protected,omitempty"`

	ClientID          string   `yaml:"client_id,omitempty"`
	ClientSecret      string   `yaml:"client_secret,omitempty"`
	CredentialCommand []string `yaml:"credential_command,omitempty"` // prints the client secret
	KeyFile           string   `yaml:"key_file,omitempty"`           // signs instead of a secret
	Audience          string   `yaml:"audience,omitempty"`           // of what the key signs, if it is not the URL
	DataDir           string   `yaml:"data_dir,omitempty"`           // of the one program, which has the credential
	OIDC              *OIDC    `yaml:"oidc,omitempty"`
}

// OIDC is a person who has signed in at an OpenID issuer.
type OIDC struct {
	Issuer       string    `yaml:"issuer"`
	ClientID     string    `yaml:"client_id"`
	Scopes       []string  `yaml:"scopes,omitempty"`
	AccessToken  string    `yaml:"access_token,omitempty"`
	RefreshToken string    `yaml:"refresh_token,omitempty"`
	Expires      time.Time `yaml:"expires,omitempty"`
}

// Path returns where the file is: $XDG_CONFIG_HOME or ~/.config, on Windows %AppData%.
func Path() (string, error) {
	if folder := os.Getenv("XDG_CONFIG_HOME"); folder != "" {
		return filepath.Join(folder, "idp", "config.yaml"), nil
	}
	if runtime.GOOS == "windows" {
		folder, err := os.UserConfigDir()
		return filepath.Join(folder, "idp", "config.yaml"), err
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".config", "idp", "config.yaml"), err
}

// Load reads the file; without one there are no contexts.
func Load(path string) (*File, error) {
	f := &File{Contexts: map[string]*Context{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, failure.NotSignedInf("%s has secrets, but others can read it: chmod 600 %s", path, path)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(f); err != nil {
		return nil, failure.Usagef("%s: %w", path, errors.New(firstLine(err)))
	}
	return f, nil
}

// firstLine drops the excerpts of the file from the parser's message, because they may be secret.
func firstLine(err error) string {
	var faults *yaml.TypeError
	if errors.As(err, &faults) {
		return "there are members that this version of idp does not know, or of another type"
	}
	return "it is not YAML"
}

// Change changes the file while no other process does: two commands at the same time lose nothing.
func Change(ctx context.Context, path string, change func(*File) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return fmt.Errorf("%s: %w", lock.Path(), err)
	}
	defer func() { _ = lock.Unlock() }() // it ends with the process at the latest
	f, err := Load(path)
	if err != nil {
		return err
	}
	if err := change(f); err != nil {
		return err
	}
	return f.save(path)
}

// save replaces the file. Only its owner can read it.
func (f *File) save(path string) error {
	text, err := yaml.Marshal(f)
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".config-*") // its mode is 0600
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.Write(text)
	if err = errors.Join(err, temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}

// Find returns the context with the name, or the current one for "".
func (f *File) Find(name string) (string, *Context, error) {
	if name == "" {
		name = f.Current
	}
	if name == "" {
		return "", nil, failure.NotSignedInf("not signed in: idp login URL, or set IDPCLI_URL and IDPCLI_TOKEN")
	}
	c := f.Contexts[name]
	if c == nil {
		return "", nil, failure.Usagef("there is no context %q: idp context list", name)
	}
	return name, c, nil
}

// Rename gives a context another name.
func (f *File) Rename(from, to string) error {
	_, c, err := f.Find(from)
	if err != nil {
		return err
	}
	if f.Contexts[to] != nil {
		return failure.Usagef("there is a context %q already", to)
	}
	delete(f.Contexts, from)
	f.Contexts[to] = c
	if f.Current == from {
		f.Current = to
	}
	return nil
}

// Delete removes a context.
func (f *File) Delete(name string) error {
	if f.Contexts[name] == nil {
		return failure.Usagef("there is no context %q: idp context list", name)
	}
	delete(f.Contexts, name)
	if f.Current == name {
		f.Current = ""
	}
	return nil
}

// How says how a context signs in, without secrets.
func (c *Context) How() string {
	switch {
	case c.DataDir != "":
		return "data folder " + c.DataDir
	case c.OIDC != nil:
		return "issuer " + c.OIDC.Issuer
	case c.KeyFile != "":
		return fmt.Sprintf("client %s, key %s", c.ClientID, c.KeyFile)
	case len(c.CredentialCommand) > 0:
		return fmt.Sprintf("client %s, command %s", c.ClientID, c.CredentialCommand[0])
	}
	return "client " + c.ClientID
}
