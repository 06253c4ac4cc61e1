// Package config fills a program's configuration struct from four layers, later ones winning: the defaults that the struct holds,
// a YAML file, the environment (IDP_…), flags. A program starts with a configuration that is right in all its parts, or says
// everything that is wrong with it and does not start.
//
// A field's mapstructure tag names its key; nested structs make dotted keys, squashed ones don't. The key nats.max_conns is
// nats: {max_conns: …} in the file, IDP_NATS_MAX_CONNS in the environment and --nats-max-conns among the flags. The doc tag
// describes it. Fields may be strings, booleans, integers, floats, time.Duration (30s), []string (a,b), map[string]string
// (k=v,l=w), and whatever has UnmarshalText: secret.String, slog.Level. A later layer replaces a list or map as a whole.
//
// A value of the environment may also come from a file (Docker and Kubernetes secrets): IDP_X_FILE names it. An empty variable is
// one that is not set. Secrets have no flags: every user of the machine can read those.
//
// A struct, at any depth, may have Validate() error: it is called after all layers.
package config

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// Options says where a configuration comes from, besides the struct's defaults.
type Options struct {
	Program string   // the program's name, for messages
	File    string   // read where neither --config nor IDP_CONFIG names one; empty: no file
	Environ []string // as os.Environ gives it
	Args    []string // the command line's flags, without program and sub-command
}

// ErrHelp is what Load returns where --help or -h is among the flags. Usage has the text.
var ErrHelp = pflag.ErrHelp

// Error is what is wrong with a configuration: all of it. No fault holds a rejected value.
type Error struct {
	Program string
	Faults  []string
}

// Error has one line a fault.
func (e *Error) Error() string {
	return fmt.Sprintf("%s: the configuration has %d fault(s):\n  %s", e.Program, len(e.Faults), strings.Join(e.Faults, "\n  "))
}

// Load fills into, a pointer to a struct that holds the defaults. It returns ErrHelp, an *Error with every fault, or nil; into is
// changed only in the last case. It panics for a struct that can't be a configuration: that is a programming error.
func Load(into any, o Options) error {
	target := reflect.ValueOf(into).Elem()
	s := schemaOf(target.Type())

	flags, err := readFlags(s, o.Args)
	if err != nil {
		return err
	}
	environment := readEnvironment(s, o.Environ)
	file := readFile(s, cmp.Or(flags.file, environment.file, o.File))

	merged := viper.New()
	var faults []string
	for _, l := range []*layer{file, environment, flags} {
		tree := s.decode(l)
		faults = append(faults, l.faults...)
		if err := merged.MergeConfigMap(tree); err != nil {
			return fmt.Errorf("merge configuration: %w", err)
		}
	}

	result := reflect.New(target.Type()).Elem()
	result.Set(target)
	for _, f := range s.fields {
		if merged.InConfig(f.key) {
			result.FieldByIndex(f.index).Set(reflect.ValueOf(merged.Get(f.key)))
		}
	}
	if faults = append(faults, validate(result, "")...); len(faults) > 0 {
		return &Error{o.Program, faults}
	}
	target.Set(result)
	return nil
}
