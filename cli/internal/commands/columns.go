package commands

import "github.com/idplatform/idplatform/cli/internal/output"

// onOff are the words for what is switched.
var onOff = map[string]string{"1": "on", "0": "off"}

// inWords is a column that says in words what a member's values mean. A value without words is shown as it is.
func inWords(title, member string, words map[string]string) output.Column {
	return output.Column{Title: title, Of: func(o output.Object) string {
		value := o.Text(member)
		if word, has := words[value]; has {
			return word
		}
		return value
	}}
}
