package config

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

const configFlag = "config"

// readFlags reads the command line. Its only error is ErrHelp.
func readFlags(s *schema, args []string) (*layer, error) {
	l := &layer{values: map[*field]written{}}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	set.String(configFlag, "", "")
	for i := range s.fields {
		f := &s.fields[i]
		if f.flag == "" {
			continue
		}
		set.String(f.flag, "", f.doc)
		if f.typ.Kind() == reflect.Bool {
			set.Lookup(f.flag).NoOptDefVal = "true"
		}
	}

	// pflag stops at the first fault. So each unknown flag is noted, then declared (or, if short, removed from the
	// arguments), and everything is parsed again.
	for {
		err := set.Parse(args)
		unknown, isUnknown := errors.AsType[*pflag.NotExistError](err)
		if !isUnknown {
			if errors.Is(err, ErrHelp) {
				return nil, ErrHelp
			}
			if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
				l.faults = append(l.faults, "--"+missing.GetFlag().Name+" needs a value")
			} else if err != nil {
				l.faults = append(l.faults, "the command line has a malformed flag")
			}
			break
		}
		name := unknown.GetSpecifiedName()
		if short := unknown.GetSpecifiedShortnames(); short != "" {
			l.faults = append(l.faults, fmt.Sprintf("-%s is not known: flags have two dashes", name))
			args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "-"+short })
			continue
		}
		l.faults = append(l.faults, "--"+name+s.whyNoFlag(name))
		set.String(name, "", "")
		set.Lookup(name).NoOptDefVal = " " // so that it does not take the next argument as its value
	}

	if set.NArg() > 0 && len(l.faults) == 0 {
		l.faults = append(l.faults, "the command line has an argument that is not a flag")
	}
	set.Visit(func(flag *pflag.Flag) {
		if f := s.byFlag[flag.Name]; f != nil {
			l.values[f] = written{"--" + flag.Name, flag.Value.String()}
		} else if flag.Name == configFlag {
			l.file = flag.Value.String()
		}
	})
	return l, nil
}

// whyNoFlag explains why name is not a flag. It continues a sentence that starts with the name.
func (s *schema) whyNoFlag(name string) string {
	for _, f := range s.fields {
		if f.secret && f.env == prefix+strings.ToUpper(strings.ReplaceAll(name, "-", "_")) {
			return fmt.Sprintf(" would show a secret to every user of the machine: use %s or %s%s",
				f.env, f.env, fileSuffix)
		}
	}
	names := []string{configFlag}
	for flag := range s.byFlag {
		names = append(names, flag)
	}
	return " is not known" + didYouMean(name, names, "--")
}
