package output

// Style says whether texts for people have colours: on a terminal, unless NO_COLOR is set (https://no-color.org).
type Style bool

// Bold is for what comes before data, such as the titles of columns.
func (s Style) Bold(text string) string { return s.with("1", text) }

// Red is for what is taken away or wrong.
func (s Style) Red(text string) string { return s.with("31", text) }

// BoldRed is for what is refused.
func (s Style) BoldRed(text string) string { return s.with("1;31", text) }

// Green is for what is added or right.
func (s Style) Green(text string) string { return s.with("32", text) }

// Yellow is for what changes or wants attention.
func (s Style) Yellow(text string) string { return s.with("33", text) }

func (s Style) with(code, text string) string {
	if !s || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
