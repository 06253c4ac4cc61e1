package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// fault is the first of its kind at an operation.
type fault struct {
	what, where, got string
	times            int
}

func (a *attack) fault(r *made, what, more string, answer []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count++
	key := what + " " + r.operation.id
	f, known := a.faults[key]
	if !known {
		if len(answer) > 800 {
			answer = answer[:800]
		}
		f = fault{what: what, where: r.String(), got: strings.TrimSpace(more + " " + string(answer))}
	}
	f.times++
	a.faults[key] = f
}

// traces are in texts of programs that broke.
var traces = []string{"goroutine ", ".go:", "runtime error", "SQLITE_", "sqlite3:", "reflect:"}

// withoutPlaces is a problem document without the places of its faults: they name members, some by what a schema in the
// request calls them.
func withoutPlaces(text []byte) string {
	var problem struct {
		Errors []struct {
			Location string `json:"location"`
		} `json:"errors"`
	}
	_ = json.Unmarshal(text, &problem) // what is no problem has no places
	body := string(text)
	for _, fault := range problem.Errors {
		place, _ := json.Marshal(fault.Location) // of a string, never fails
		if at := strings.Trim(string(place), `"`); at != "" {
			body = strings.ReplaceAll(body, at, "")
		}
	}
	return body
}

// judge looks for what no answer may be.
func (a *attack) judge(r *made, answer *http.Response, text []byte) {
	status, body := answer.StatusCode, string(text)
	where := fmt.Sprint(status)
	if status >= http.StatusInternalServerError {
		a.fault(r, "5xx", where, text)
	}
	if strings.Contains(body, victimMark) {
		a.fault(r, "another tenant's record", where, text)
	}
	if r.tenant == victims && status < http.StatusBadRequest && !r.operation.open {
		a.fault(r, "acts for another tenant", where, text)
	}
	if strings.Contains(body, secretMark) {
		a.fault(r, "a secret", where, text)
	}
	if status < http.StatusBadRequest {
		return
	}
	if strings.Contains(withoutPlaces(text), refusedMark) {
		a.fault(r, "repeats what it refuses", where, text)
	}
	for _, trace := range traces {
		if strings.Contains(body, trace) {
			a.fault(r, "a trace of the program", where, text)
		}
	}
	if kind := answer.Header.Get("Content-Type"); r.Method != http.MethodHead && !strings.Contains(kind, "json") {
		a.fault(r, "not JSON", where+" "+kind, text)
	}
}

// report prints what was found, and returns how much.
func (a *attack) report() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	classes, never := map[int]int{}, []string{}
	for _, o := range a.operations {
		succeeded := false
		for status, n := range a.states[o.id] {
			classes[status] += n
			succeeded = succeeded || status < http.StatusBadRequest
		}
		if !succeeded {
			never = append(never, o.id)
		}
	}
	for _, status := range slices.Sorted(maps.Keys(classes)) {
		fmt.Printf("%d  %7d answers\n", status, classes[status])
	}
	fmt.Printf("%d of %d operations never succeeded: %s\n", len(never), len(a.operations), strings.Join(never, " "))
	for _, key := range slices.Sorted(maps.Keys(a.faults)) {
		f := a.faults[key]
		fmt.Printf("\n!!! %s (%d times): %s\n--> %s\n", f.what, f.times, f.where, f.got)
	}
	fmt.Printf("\n%d faults\n", a.count)
	return a.count
}
