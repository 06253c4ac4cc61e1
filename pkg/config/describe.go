package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/secret"
)

// Setting describes one key of a configuration for people.
type Setting struct {
	Key     string // nats.url
	Env     string // IDP_NATS_URL
	Flag    string // --nats-url; empty for a secret, which has no flag
	Value   string // the current value; masked for secrets and for the credentials in URLs
	Default string // the value if no layer sets one
	Doc     string
}

// Describe lists a configuration's settings in the order of its fields. Both arguments are pointers to structs of one
// type.
func Describe(cfg, defaults any) []Setting {
	now, before := reflect.ValueOf(cfg).Elem(), reflect.ValueOf(defaults).Elem()
	s := schemaOf(now.Type())
	settings := make([]Setting, 0, len(s.fields))
	for _, f := range s.fields {
		setting := Setting{
			Key: f.key, Env: f.env, Doc: f.doc,
			Value: secret.MaskURLs(show(f.value(now))), Default: show(f.value(before)),
		}
		if f.flag != "" {
			setting.Flag = "--" + f.flag
		}
		settings = append(settings, setting)
	}
	return settings
}

// Usage is the text for --help. Its argument is a pointer to a struct that holds the defaults.
func Usage(program string, defaults any) string {
	var b strings.Builder
	fmt.Fprintf(&b, `%s is configured by a YAML file, environment variables and flags; later ones override earlier ones.
A value can also come from a file: add %s to the variable's name and set it to the file's path. Secrets have no flags.

  --config, %s
        the YAML file
`, program, fileSuffix, fileEnv)
	for _, s := range Describe(defaults, defaults) {
		names := s.Env
		if s.Flag != "" {
			names = s.Flag + ", " + s.Env
		}
		fmt.Fprintf(&b, "  %s\n        %s", names, s.Doc)
		if s.Default != "" {
			fmt.Fprintf(&b, " (default %s)", s.Default)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// show writes a value in the form that decode reads; a secret is masked.
func show(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.String {
			items := make([]string, v.Len())
			for i := range items {
				items[i] = v.Index(i).String()
			}
			return strings.Join(items, ",")
		}
	case reflect.Map:
		var pairs []string
		for entry := v.MapRange(); entry.Next(); {
			pairs = append(pairs, entry.Key().String()+"="+entry.Value().String())
		}
		slices.Sort(pairs)
		return strings.Join(pairs, ",")
	}
	if d, ok := v.Interface().(time.Duration); ok {
		return shortDuration(d)
	}
	return fmt.Sprint(v.Interface())
}

// shortDuration leaves out trailing zero units: 1h instead of 1h0m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
