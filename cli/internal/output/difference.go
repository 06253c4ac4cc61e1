package output

import (
	"fmt"
	"io"
	"reflect"
)

// unchanging are members that change with every write, so a difference need not show them.
var unchanging = map[string]bool{"version": true, "time_modified": true}

// Difference prints which members a change would change: a line for the old value and one for the new. A record that
// would be made has only new ones, one that would be deleted only old ones.
func Difference(w io.Writer, style Style, before, after any) error {
	old, _ := before.(Object)
	made, _ := after.(Object)
	changed := false
	line := func(sign, name string, value any) error {
		changed = true
		text := fmt.Sprintf("%s %s: %s", sign, Printable(name), Printable(shown(value)))
		if sign == "-" {
			text = style.Red(text)
		} else {
			text = style.Green(text)
		}
		_, err := fmt.Fprintln(w, text)
		return err
	}
	for _, m := range old {
		now := made.Get(m.Name)
		if unchanging[m.Name] || reflect.DeepEqual(m.Value, now) || made != nil && !made.has(m.Name) {
			continue
		}
		if err := line("-", m.Name, m.Value); err != nil {
			return err
		}
		if now != nil {
			if err := line("+", m.Name, now); err != nil {
				return err
			}
		}
	}
	for _, m := range made {
		if old.has(m.Name) || unchanging[m.Name] || Text(m.Value) == "" {
			continue
		}
		if err := line("+", m.Name, m.Value); err != nil {
			return err
		}
	}
	if !changed {
		_, err := fmt.Fprintln(w, "no difference")
		return err
	}
	return nil
}

func (o Object) has(name string) bool {
	for _, m := range o {
		if m.Name == name {
			return true
		}
	}
	return false
}

func shown(value any) string {
	if text, isString := value.(string); isString && text == "" {
		return `""`
	}
	if value == nil {
		return "null"
	}
	return Text(value)
}
