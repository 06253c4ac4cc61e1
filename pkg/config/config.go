// Package config fills a program's configuration struct from four layers: the defaults in the struct, a YAML file,
// the environment (IDP_…) and flags. A later layer overrides an earlier one. A program with a faulty configuration
// reports all faults at once and does not start.
//
// A field's mapstructure tag names its key. A nested struct adds its name and a dot to the keys of its fields; a
// squashed struct adds nothing. The key nats.max_conns is nats: {max_conns: …} in the file, IDP_NATS_MAX_CONNS in the
// environment and --nats-max-conns as a flag. The doc tag describes the key. Fields can be strings, booleans,
// integers, floats, time.Duration (30s), []string (a,b), map[string]string (k=v,l=w), and types with UnmarshalText
// such as secret.String and slog.Level. A later layer replaces a list or map as a whole.
//
// The value of a variable can also come from a file (Docker and Kubernetes secrets): IDP_X_FILE names it. An empty
// variable counts as not set. Secrets have no flags, because every user of the machine can read a program's flags.
//
// A struct, at any depth, can have a method Validate() error: it is called after all layers are read.
package config

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// Options lists the sources of a configuration, apart from the struct's defaults.
type Options struct {
	Program string   // the program's name, for messages
	File    string   // used if neither --config nor IDP_CONFIG names one; empty: no file
	Environ []string // in the form of os.Environ
	Args    []string // the flags of the command line, without program and sub-command
}

// ErrHelp is what Load returns if --help or -h is among the flags. Usage has the text to print.
var ErrHelp = pflag.ErrHelp

// Error lists every fault of a configuration. No fault contains a rejected value.
type Error struct {
	Program string
	Faults  []string
}

// Error has one line for each fault.
func (e *Error) Error() string {
	return fmt.Sprintf("%s: the configuration has %d fault(s):\n  %s", e.Program, len(e.Faults),
		strings.Join(e.Faults, "\n  "))
}

// Load fills into, a pointer to a struct that holds the defaults. It returns ErrHelp, an *Error with every fault, or
// nil; it changes into only if it returns nil. It panics for a struct that is not a valid configuration type, which
// is a programming error.
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
