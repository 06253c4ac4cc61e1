package users_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/users"
)

const (
	ndjson  = "application/x-ndjson"
	csvType = "text/csv"

	batch = 2000 // records in one transaction of an import
)

// line is a result line of an import.
type line struct {
	Line   int
	Status string
	ID     string
	Errors []apperr.Fault
}

func (l line) locations() (list []string) {
	for _, fault := range l.Errors {
		list = append(list, fault.Location)
	}
	return list
}

func send(c *testkit.Client, contentType, query string, body any) *testkit.Answer {
	return c.With("Content-Type", contentType).Post("/v1/users/import"+query, body)
}

// lines are the results of an import, one for each record, in order.
func lines(t testing.TB, answer *testkit.Answer) []line {
	t.Helper()
	require.Equal(t, http.StatusOK, answer.Status, "%s", answer.Body)
	require.Equal(t, ndjson, answer.Header.Get("Content-Type"))
	list := []line{}
	for dec := json.NewDecoder(bytes.NewReader(answer.Body)); dec.More(); {
		var l line
		require.NoError(t, dec.Decode(&l))
		require.Equal(t, len(list)+1, l.Line)
		require.Equal(t, l.Status == "failed", len(l.Errors) > 0)
		list = append(list, l)
	}
	return list
}

// importLines imports NDJSON.
func importLines(t testing.TB, c *testkit.Client, query, body string) []line {
	t.Helper()
	return lines(t, send(c, ndjson, query, body))
}

func statuses(list []line) (all []string) {
	for _, l := range list {
		all = append(all, l.Status)
	}
	return all
}

// file is NDJSON of users first … last.
func file(first, last int) string {
	var b strings.Builder
	for n := first; n <= last; n++ {
		fmt.Fprintf(&b, "{\"username\":\"user%d\",\"email\":\"user%d@acme.test\"}\n", n, n)
	}
	return b.String()
}

func total(c *testkit.Client) int {
	return int(c.Get("/v1/users?page_size=1").Object()["total"].(float64))
}

func TestImportNDJSON(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	list := importLines(t, c, "", "\ufeff"+
		`{"username":"Lǐ.伟","display_name":"李伟","email":"li@acme.test","mobile":"+8613800000000","employee_number":"A-17","gender":"男","locale":"zh-CN","zoneinfo":"Asia/Shanghai","status":"0","email_verified":true,"must_change_password":true,"sys_ext_props":`+exact+`,"free_ext_props":{"a":1}}

	 {"username":"second"}  `+"\r\n"+
		`{"username":"third","id":"7","version":9,"tenant_id":"globex","locked":true,"time_created":"2020-01-01T00:00:00Z","locked_until":null,"status":"resigned"}`)
	require.Equal(t, []string{"created", "created", "created"}, statuses(list))
	first := c.Get("/v1/users/" + list[0].ID)
	user := first.Object()
	require.Equal(t, []any{"Lǐ.伟", "李伟", "li@acme.test", "+8613800000000", "A-17", "男", "zh-CN", "Asia/Shanghai", "0",
		true, false, true, false, 1.0},
		[]any{user["username"], user["display_name"], user["email"], user["mobile"], user["employee_number"],
			user["gender"], user["locale"], user["zoneinfo"],
			user["status"], user["email_verified"], user["mobile_verified"], user["must_change_password"],
			user["password_set"], user["version"]})
	sys, _ := props(t, first)
	require.Equal(t, literal(t, exact), sys)
	third := c.Get("/v1/users/" + list[2].ID).Object()
	require.Equal(t, []any{"acme", false, s.Clock.Now().String(), 1.0, "0"}, []any{third["tenant_id"], third["locked"],
		third["time_created"], third["version"], third["status"]},
		"read-only members are ignored, and a resigned user becomes a disabled one")
	require.Empty(t, importLines(t, c, "", ""))
	require.Empty(t, importLines(t, c, "", "\n \n"))
}

func TestImportBadRecords(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	for record, locations := range map[string][]string{
		`nonsense`: {"body"}, `[]`: {"body"}, `null`: {"body"}, `7`: {"body"}, `{"username":"a"`: {"body"},
		`{"username":"a"}}`: {"body"}, `{"username":"a"} {}`: {"body"},
		"{\"username\":\"\xff\"}": {"body"}, "{\"username\":\"a\x00\"}": {"body"},
		`{"username":"\u0000"}`: {"body.username"},
		`{}`:                    {"body.username"}, `{"username":""}`: {"body.username"},
		`{"username":7}`: {"body.username"}, `{"username":"a","email_verified":"yes"}`: {"body.email_verified"},
		`{"username":"a ","email":"x","mobile":"y","status":"2"}`: {"body.username", "body.email", "body.mobile",
			"body.status"},
		`{"username":"a","nickname":"x","Username":"b"}`: {"body.nickname", "body.Username"},
		`{"username":"a","sys_ext_props":[]}`:            {"body.sys_ext_props"},
		`{"username":"a","sys_ext_props":{"x":"` + strings.Repeat("x", 64<<10) +
			`"}}`: {"body.sys_ext_props"},
		`{"username":"a","time_created":"yesterday"}`: {"body"},
		`{"username":"xavier","password":"short"}`:    {"body.password"},
		`{"username":"a","password_hash":"nonsense"}`: {"body.password_hash"},

		`{"username":"a","password_hash":"$2b$31$EixZaYVK1fsbw1ZfbX3OXePaWxn96p36WQoeG6Lruj3vjPGga31lW"}`:                              {"body.password_hash"},
		`{"username":"a","password":"a good Passw0rd","password_hash":"$2b$10$EixZaYVK1fsbw1ZfbX3OXePaWxn96p36WQoeG6Lruj3vjPGga31lW"}`: {"body.password_hash"},
	} {
		list := importLines(t, c, "", record+"\n"+`{"username":"good"}`)
		require.Len(t, list, 2, record)
		require.Equal(t, "failed", list[0].Status, record)
		require.ElementsMatch(t, locations, list[0].locations(), record)
		require.Equal(t, []any{"good"}, c.Items("/v1/users", "username"), record)
		c.Delete("/v1/users/"+list[1].ID, nil).OK(nil)
	}
}

// The result of a record is bounded, however many faults it has.
func TestImportTellsSomeOfManyFaults(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	var record strings.Builder
	record.WriteString(`{"username":"a "`)
	for n := range 50_000 {
		fmt.Fprintf(&record, `,"member%d":1`, n)
	}
	list := importLines(t, c, "", record.String()+"}")
	require.Len(t, list, 1)
	require.Len(t, list[0].Errors, 22, "twenty of them, that there are more, and the username")
	wide := strings.Join(names(101), ",")
	send(c, csvType, "", wide).Problem(http.StatusBadRequest, "invalid_parameters", "body")
}

func TestImportSecrets(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	const hash = "$pbkdf2-sha256$i=1000,l=32$8PHy8/T19vf4+fr7/P3+/w$KsPhSj2U8lAmhBtOPmykJT0WrbME0zvRr1XJnoXgesY"
	body := fmt.Sprintf(
		"{\"username\":\"xavier\",\"password\":%q}\n{\"username\":\"yvonne\",\"password_hash\":%q}\n{\"username\":\"zoe\"}\n", password, hash)
	list := importLines(t, s.As("acme", auth.UsersRead, auth.UsersWrite), "?dry_run=true", body)
	require.Equal(t, []string{"failed", "failed", "created"}, statuses(list))
	require.Equal(t, []string{"body.password"}, list[0].locations())
	require.Equal(t, []string{"body.password_hash"}, list[1].locations())

	require.Equal(t, []string{"created", "created", "created"}, statuses(importLines(t, c, "", body)))
	require.True(t, signsIn(c, "xavier", password))
	require.True(t, signsIn(c, "yvonne", "密码🔑pass"))
	require.Equal(t, []any{true, true, false}, c.Items("/v1/users", "password_set"))
	require.Equal(t, []string{"updated"}, statuses(importLines(t, c, "?on_conflict=update",
		`{"username":"XAVIER","password":"a new Passw0rd"}`)))
	require.True(t, signsIn(c, "xavier", "a new Passw0rd"))
}

func TestImportConflicts(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	a := addUser(t, c, "a", object{"email": "a@acme.test", "mobile": "+8613800000001", "display_name": "甲",
		"gender": "x", "email_verified": true})
	b := addUser(t, c, "b", object{"email": "b@acme.test"})
	addUser(t, in(s, "globex"), "new")
	body := `{"username":"new","display_name":"乙"}
{"username":"A","display_name":"changed"}
{"username":"other","email":"A@acme.test"}
{"username":"B","email":"a@acme.test"}
{"username":"b@acme.test"}
{"username":"b","mobile":"+8613800000001"}
`
	for conflict, want := range map[string][]string{
		"":       {"created", "failed", "failed", "failed", "failed", "failed"},
		"fail":   {"created", "failed", "failed", "failed", "failed", "failed"},
		"skip":   {"created", "skipped", "skipped", "skipped", "skipped", "skipped"},
		"update": {"created", "updated", "failed", "failed", "failed", "failed"},
	} {
		list := importLines(t, c, "?dry_run=true&on_conflict="+conflict, body)
		require.Equal(t, want, statuses(list), conflict)
		switch conflict {
		case "skip":
			require.Equal(t, []any{a["id"], a["id"], b["id"], b["id"], b["id"]},
				[]any{list[1].ID, list[2].ID, list[3].ID, list[4].ID, list[5].ID})
		case "update":
			require.Equal(t, a["id"], list[1].ID)
			require.Equal(t, [][]string{{"body.email"}, {"body.email"}, {"body.username"}, {"body.mobile"}},
				[][]string{list[2].locations(), list[3].locations(), list[4].locations(), list[5].locations()})
		default:
			require.Equal(t, []string{"body.username", "body.email"}, list[3].locations())
		}
		require.Equal(t, 2, total(c))
	}
	send(c, ndjson, "?on_conflict=merge", body).Problem(http.StatusBadRequest, "invalid_parameters",
		"query.on_conflict")
	unchanged(t, c, a)
	unchanged(t, c, b)

	// An update changes the given members.
	c.Post(path(b, "resign"), nil).OK(nil)
	list := importLines(t, c, "?on_conflict=update",
		`{"username":"A","email":"new@acme.test","locked":true,"sys_ext_props":{"x":1}}
{"username":"b","gender":"y","status":"1"}
{"username":"a"}
{"username":"a","status":"9"}
`)
	require.Equal(t, []string{"updated", "failed", "updated", "failed"}, statuses(list))
	now := c.Get(path(a)).Object()
	require.Equal(t, []any{"a", "new@acme.test", "+8613800000001", "甲", "x", false, false, object{"x": 1.0}, 3.0},
		[]any{now["username"], now["email"], now["mobile"], now["display_name"], now["gender"], now["locked"],
			now["email_verified"], now["sys_ext_props"], now["version"]})
}

// null means in an import what it means in PATCH: the member gets its zero value, a property goes.
func TestImportNull(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	id := importLines(t, c, "", `{"username":"a","display_name":"A","email":"a@acme.test","email_verified":true,`+
		`"free_ext_props":{"x":1,"y":2},"locked_until":null,"mobile":null}`)[0].ID
	list := importLines(t, c, "?on_conflict=update",
		`{"username":"a","display_name":null,"email":null,"email_verified":null,"free_ext_props":{"x":null}}`)
	require.Equal(t, []string{"updated"}, statuses(list))
	answer := c.Get("/v1/users/" + id)
	user := answer.Object()
	require.Equal(t, []any{"", "", false}, []any{user["display_name"], user["email"], user["email_verified"]})
	_, free := props(t, answer)
	require.Equal(t, literal(t, `{"y":2}`), free)
	importLines(t, c, "?on_conflict=update", `{"username":"a","free_ext_props":null}`)
	_, free = props(t, c.Get("/v1/users/"+id))
	require.Equal(t, literal(t, `{}`), free)
	require.Equal(t, []string{"body.username"},
		importLines(t, c, "?on_conflict=update", `{"username":null}`)[0].locations())
}

func TestImportCSV(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	rows := func(contentType, body string) []line { return lines(t, send(c, contentType, "", body)) }
	list := rows("text/csv; charset=utf-8",
		"\ufeff\"username\", display_name ,email_verified,must_change_password,sys_ext_props,version,locked,status\r\n"+
			"li.wei,\"李伟, "+
			"\"\"Lee\"\"\",TRUE,0,\"{\"\"a\"\":[1,\"\"x\"\"],\"\"big\"\":12345678901234567890}\",7,true,0\r\n"+
			"\r\n"+
			"empty,,,,,,,\r\n"+
			"no flag,,maybe,,,,,\n"+
			"not-json,,,,{a},,,\n"+
			"too,few\n"+
			"too,many,,,,,,,x\n"+
			"gbk,\xc0\xee\xce\xb0,,,,,,\n"+
			"last,王芳,false,1,{},,,")
	require.Equal(t, []string{"created", "created", "failed", "failed", "failed", "failed", "failed", "created"},
		statuses(list))
	require.ElementsMatch(t, []string{"body.email_verified"}, list[2].locations())
	require.ElementsMatch(t, []string{"body.sys_ext_props"}, list[3].locations())
	for _, bad := range list[4:7] {
		require.Equal(t, []string{"body"}, bad.locations())
	}
	first := c.Get("/v1/users/" + list[0].ID)
	user := first.Object()
	require.Equal(t, []any{"li.wei", `李伟, "Lee"`, true, false, "0", 1.0, false},
		[]any{user["username"], user["display_name"], user["email_verified"], user["must_change_password"],
			user["status"], user["version"], user["locked"]})
	sys, _ := props(t, first)
	require.Equal(t, literal(t, `{"a":[1,"x"],"big":12345678901234567890}`), sys)
	require.Equal(t, []any{"li.wei", "empty", "last"}, c.Items("/v1/users", "username"))

	require.Empty(t, rows(csvType, "username,email\n"))
	for _, ends := range []string{"\r", "\n", "\r\n", "\r\n\r", "\n\r"} {
		name := "ends" + strings.NewReplacer("\r", "r", "\n", "n").Replace(ends)
		text := "username,display_name\n" + name + "1,\"x, y\"\n" + name + "2,y\n"
		list := rows(csvType, strings.ReplaceAll(text, "\n", ends))
		require.Equal(t, []string{"created", "created"}, statuses(list), name)
	}
	before := total(c)
	for _, bad := range []string{"username,email,username\na,b,c\n", "username,\xff\na,b\n", "username\n\"a\"b\n",
		"username\n\"a", "", "\r", "Username\nx\n", "username;email\nx;y\n", "x,y\nz,y\n", "username,e-mail\rx,y"} {
		send(c, csvType, "", bad).Problem(http.StatusBadRequest, "invalid_parameters", "body")
	}
	require.Equal(t, before, total(c))
	list = rows(csvType, "username,shared_contacts,managed_by,avatar_url\nignoring,\"email, mobile\",scim,x\n")
	require.Equal(t, []string{"created"}, statuses(list), "read-only members are ignored")
}

func TestImportRefuses(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	for _, contentType := range []string{"", "application/json", "application/x-ndjson2", "text/plain",
		"multipart/form-data; boundary=x"} {
		send(c, contentType, "", file(1, 1)).Problem(http.StatusUnsupportedMediaType, "unsupported_media_type")
	}
	for _, key := range []string{strings.Repeat("k", 256), "é"} {
		send(c.With("Idempotency-Key", key), ndjson, "", file(1, 1)).
			Problem(http.StatusBadRequest, "invalid_parameters", "header.Idempotency-Key")
	}
	send(s.As("acme", auth.UsersRead), ndjson, "", file(1, 1)).Problem(http.StatusForbidden, "forbidden")

	// Records have a limit, and no cell of a CSV file, terminated or not, takes more memory than that.
	long := strings.Repeat("x", 1<<20)
	send(c, ndjson, "", `{"username":"`+long+`"}`).Problem(http.StatusRequestEntityTooLarge, "too_large")
	send(c, csvType, "", "username\n"+long+"x\n").Problem(http.StatusRequestEntityTooLarge, "too_large")
	endless := &counting{in: io.MultiReader(strings.NewReader("username\n\""), endlessly('x'))}
	send(c, csvType, "", endless).Problem(http.StatusRequestEntityTooLarge, "too_large")
	require.Less(t, endless.n, 4<<20)
	require.Zero(t, total(c))
}

// counting counts the bytes that are read.
type counting struct {
	in io.Reader
	n  int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += n
	return n, err
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

type endlessly byte

func (b endlessly) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

// 3,000 records are several transactions. A repeated name is reported wherever the two records are.
func TestImportOfManyBatches(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	body := file(1, 2000) + `{"username":"USER500"}` + "\n" + file(2001, 2999) + file(1, 1)
	counts := func(list []line) map[string]int {
		counts := map[string]int{}
		for _, l := range list {
			counts[l.Status]++
		}
		return counts
	}
	list := importLines(t, c, "", body)
	require.Equal(t, map[string]int{"created": 2999, "failed": 2}, counts(list))
	require.Equal(t, []string{"body.username"}, list[2000].locations())
	require.Equal(t, []string{"body.username", "body.email"}, list[3000].locations())
	require.Equal(t, 2999, total(c))
	again := importLines(t, c, "?on_conflict=skip", body)
	require.Equal(t, map[string]int{"skipped": 3001}, counts(again))
	require.Equal(t, list[499].ID, again[2000].ID)
	require.Equal(t, 2999, total(c))
}

// A dry run answers what the import would, including users who exist only in the import. The records are so large that
// about seventy make a batch.
func TestImportDryRunIsTheSame(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	var body strings.Builder
	for n := range 70 {
		fmt.Fprintf(&body, "{\"username\":\"user%d\",\"email\":\"user%d@acme.test\",\"free_ext_props\":{\"x\":%q}}\n",
			n, n, strings.Repeat("x", 63<<10))
	}
	body.WriteString(`{"username":"user0","gender":"x"}
{"username":"user68","email":"user0@acme.test"}
{"username":"user68","email":"renamed@acme.test"}
{"username":"user69","email":"user68@acme.test"}
`)
	for conflict, want := range map[string][]string{
		"fail":   {"failed", "failed", "failed", "failed"},
		"skip":   {"skipped", "skipped", "skipped", "skipped"},
		"update": {"updated", "failed", "updated", "updated"},
	} {
		would := importLines(t, c, "?dry_run=true&on_conflict="+conflict, body.String())
		require.Zero(t, total(c))
		require.Equal(t, want, statuses(would[70:]), conflict)
		if conflict == "update" {
			is := importLines(t, in(s, "globex").With("Idempotency-Key", "key"), "?on_conflict=update", body.String())
			require.Equal(t, statuses(would), statuses(is))
			for i := range is {
				require.Equal(t, would[i].Errors, is[i].Errors)
			}
			require.Len(t, testkit.Stored(t, s, "globex", "imports"), 2)
		}
	}
}

// An interrupted import continues when it is sent again with its key, and answers as if it had not been interrupted.
func TestImportResumes(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ contentType, body string }{
		"NDJSON": {ndjson, file(1, 2*batch+400)},
		"CSV":    {csvType, "username\n" + strings.Join(names(2*batch+400), "\n")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := acme(t)
			keyed := c.With("Idempotency-Key", "import-1")
			for done := range 3 { // interrupted in the first batch, the second and the third
				cut := strings.Index(row.body, fmt.Sprint("user", done*batch+300))
				broken := io.MultiReader(strings.NewReader(row.body[:cut]), readerFunc(func([]byte) (int, error) {
					s.Events(done * batch) // what is stored has events
					return 0, io.ErrUnexpectedEOF
				}))
				doc := send(keyed, row.contentType, "", broken).Problem(http.StatusBadRequest, "invalid_parameters",
					"body")
				require.Equal(t, done*batch, total(c))
				if done > 0 {
					require.Contains(t, doc.Detail, fmt.Sprintf("(%d records are stored", done*batch))
				}
			}
			full := send(keyed, row.contentType, "", row.body)
			require.Equal(t, strings.Repeat("created ", 2*batch+400), strings.Join(statuses(lines(t, full)), " ")+" ")
			require.Equal(t, 2*batch+400, total(c))
			require.Empty(t, full.Header.Get("Idempotent-Replayed"))

			again := send(keyed, row.contentType, "", row.body)
			require.Equal(t, string(full.Body), string(again.Body))
			require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
			require.Equal(t, 2*batch+400, total(c))

			// The key belongs to the caller and to the import.
			other := in(s, "globex").With("Idempotency-Key", "import-1")
			require.Equal(t, []string{"created"}, statuses(importLines(t, other, "", `{"username":"theirs"}`)))
			for _, query := range []string{"?on_conflict=skip", "?on_conflict=update"} {
				send(keyed, row.contentType, query, row.body).Problem(http.StatusUnprocessableEntity,
					"idempotency_key_reused")
			}
			require.Equal(t, 2*batch+400, total(c))
		})
	}
}

func names(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint("user", i))
	}
	return list
}

func TestImportKeyReused(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	for i, records := range []int{batch - 1, batch, batch + 1} {
		keyed := c.With("Idempotency-Key", fmt.Sprint("key", i))
		body := file(10*batch*i, 10*batch*i+records-1)
		require.Len(t, importLines(t, keyed, "", body), records)
		before := total(c)
		lastLine := strings.LastIndex(strings.TrimSpace(body), "\n") + 1
		for name, changed := range map[string]string{
			"another value": strings.Replace(body, "acme.test", "acme.example", 1),
			"one more":      body + `{"username":"more"}`,
			"one less":      body[:lastLine],
			"the last":      body[:lastLine] + `{"username":"last"}`,
			"much more":     body + file(5*batch, 6*batch),
		} {
			send(keyed, ndjson, "", changed).Problem(http.StatusUnprocessableEntity, "idempotency_key_reused")
			require.Equal(t, before, total(c), "%d records, %s", records, name)
		}
		require.Len(t, importLines(t, keyed, "", body), records)
	}
}

// The stored results of an import are deleted after a day; then the key is a new one.
func TestImportIsForgotten(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	keyed := c.With("Idempotency-Key", "key")
	require.Equal(t, "created", importLines(t, keyed, "", file(1, 1))[0].Status)
	for _, doc := range testkit.Stored(t, s, "acme", "imports") {
		require.NotContains(t, doc, "user1", "only the results of the records are stored")
	}
	app, err := users.Spec(cheap()).New(t.Context(), s.Deps)
	require.NoError(t, err)
	forget := app.Tasks[slices.IndexFunc(app.Tasks, func(task service.Task) bool {
		return task.Name == "forget imports"
	})]
	s.Clock.Advance(24*time.Hour - time.Millisecond)
	n, err := forget.Do(t.Context())
	require.NoError(t, err)
	require.Zero(t, n)
	require.Len(t, testkit.Stored(t, s, "acme", "imports"), 1)
	s.Clock.Advance(time.Millisecond)
	n, err = forget.Do(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Empty(t, testkit.Stored(t, s, "acme", "imports"))
	require.Equal(t, "failed", importLines(t, in(s, "acme").With("Idempotency-Key", "key"), "", file(1, 1))[0].Status)
}

func TestExport(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	a := addUser(t, c, "xavier", object{"display_name": "李伟", "password": password, "email": "a@acme.test"})
	b := addUser(t, c, "b", object{"display_name": "李芳", "status": "0"})
	addUser(t, in(s, "globex"), "foreign")
	c.Post(path(a, "lock"), object{"reason": "x"}).OK(nil)
	a = c.Get(path(a)).Object()

	read := func(answer *testkit.Answer) (list []any) {
		t.Helper()
		require.Equal(t, http.StatusOK, answer.Status)
		for dec := json.NewDecoder(bytes.NewReader(answer.Body)); dec.More(); {
			var user object
			require.NoError(t, dec.Decode(&user))
			list = append(list, user)
		}
		return list
	}
	answer := c.Get("/v1/users/export")
	require.Equal(t, "application/x-ndjson; charset=utf-8", answer.Header.Get("Content-Type"))
	require.Equal(t, []any{a, b}, read(answer), "the record as it is read, in the order of ids")
	require.NotContains(t, string(answer.Body), "argon2")
	for query, want := range map[string][]any{
		"?status=0": {b}, "?locked=true": {a}, "?ids=" + b["id"].(string): {b}, "?keyword=" +
			url.QueryEscape("李芳"): {b}, "?keyword=zzz": nil,
		"?search_type=generic&keyword=" + url.QueryEscape("伟"): {a}, "?time_modified_from=2100-01-01": nil,
	} {
		require.Equal(t, want, read(c.Get("/v1/users/export"+query)), query)
	}
	for _, query := range []string{"format=xml", "status=9", "locked=x", "time_modified_from=x", "search_type=x"} {
		name, _, _ := strings.Cut(query, "=")
		c.Get("/v1/users/export?"+query).Problem(http.StatusBadRequest, "invalid_parameters", "query."+name)
	}
	answer = c.Get("/v1/users/export?format=csv&time_modified_from=2026-02-01&time_modified_to=2026-01-01")
	answer.Problem(http.StatusBadRequest, "invalid_parameters", "query.time_modified_from")

	for _, asked := range []*testkit.Answer{c.Get("/v1/users/export?format=csv"),
		c.With("Accept", "text/csv, */*;q=0.1").Get("/v1/users/export")} {
		require.Equal(t, "text/csv; charset=utf-8", asked.Header.Get("Content-Type"))
		rows, err := csv.NewReader(bytes.NewReader(asked.Body)).ReadAll()
		require.NoError(t, err)
		require.Len(t, rows, 3)
		columns := map[string]bool{}
		for i, name := range rows[0] {
			columns[name] = true
			value := a[name]
			switch v := value.(type) {
			case nil:
				value = ""
			case string:
			default:
				encoded, err := json.Marshal(v)
				require.NoError(t, err)
				value = string(encoded)
			}
			require.Equal(t, value, rows[1][i], name)
		}
		for member := range a {
			here := member == "tenant_id" || member == "avatar_url" || member == "managed_by" // means nothing elsewhere
			require.True(t, columns[member] || here, "no column for %s", member)
		}
	}
}

// What one tenant exports, another can import, in either format. Both then have the same users.
func TestExportRoundTrip(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	c.Post("/v1/users",
		`{"username":"li.wei","display_name":"李伟, \"Lee\"","email":"li@acme.test","mobile":"+8613800000000","employee_number":" 007 ","gender":"男",`+
			`"locale":"zh-CN","zoneinfo":"Asia/Shanghai","status":"0","email_verified":true,"must_change_password":true,"sys_ext_props":`+exact+`,"free_ext_props":{"a,b":"\"\n\r\n"}}`).OK(nil)
	addUser(t, c, "plain", object{"display_name": "=1+1"})
	gone := addUser(t, c, "gone")
	c.Post(path(gone, "resign"), nil).OK(nil)

	profile := []string{"username", "display_name", "email", "mobile", "employee_number", "gender", "locale",
		"zoneinfo", "status", "email_verified",
		"mobile_verified", "must_change_password", "sys_ext_props", "free_ext_props"}
	profiles := func(c *testkit.Client) (list []any) {
		for _, item := range literal(t, string(c.Get("/v1/users?page_sort=username").Body)).(object)["items"].([]any) {
			user := object{}
			for _, member := range profile {
				user[member] = item.(object)[member]
			}
			if user["status"] == "resigned" {
				user["status"] = "0" // the status is not imported
			}
			list = append(list, user)
		}
		return list
	}
	for format, contentType := range map[string]string{"ndjson": ndjson, "csv": csvType} {
		other := in(s, format)
		list := lines(t, send(other, contentType, "", c.Get("/v1/users/export?format="+format).Body))
		require.Equal(t, []string{"created", "created", "created"}, statuses(list), list)
		require.Equal(t, profiles(c), profiles(other), format)
		list = lines(t, send(c, contentType, "?on_conflict=update", c.Get("/v1/users/export?format="+format).Body))
		require.Equal(t, []string{"updated", "updated", "updated"}, statuses(list))
		require.Equal(t, []any{1.0, 1.0, 2.0}, c.Items("/v1/users", "version"),
			"importing an export into its own tenant changes nothing")
	}
}

// Tokens of two issuers with the same subject are two callers, each with its own keys.
func TestImportKeysBelongToTheIssuer(t *testing.T) {
	t.Parallel()
	signers := map[string]*auth.Signer{}
	spec := users.Spec(cheap())
	inner := spec.New
	spec.New = func(ctx context.Context, d service.Deps) (service.App, error) {
		config := auth.Config{Clock: d.Clock, Log: d.Log}
		for _, name := range []string{"a", "b"} {
			key, err := auth.GenerateKey()
			require.NoError(t, err)
			signers[name], err = auth.NewSigner(name, auth.NewKeys(key), d.Clock)
			require.NoError(t, err)
			config.Issuers = append(config.Issuers, auth.Issuer{Name: name, Keys: signers[name],
				Scopes: auth.AllScopes})
		}
		verifier, err := auth.New(config)
		require.NoError(t, err)
		d.Verifier = verifier
		return inner(ctx, d)
	}
	s := testkit.Start(t, spec)
	from := func(issuer string) *testkit.Answer {
		token, err := signers[issuer].Mint(auth.Claims{Subject: "ann", ClientID: "c", Tenant: "acme",
			Scopes: auth.AllScopes, TTL: time.Hour})
		require.NoError(t, err)
		return send(s.Stranger().With("Authorization", "Bearer "+token).With("Idempotency-Key", "key"), ndjson, "",
			file(1, 1))
	}
	require.Equal(t, []string{"created"}, statuses(lines(t, from("a"))))
	require.Equal(t, []string{"failed"}, statuses(lines(t, from("b"))), "the user is there, and this is another import")
	require.Equal(t, []string{"created"}, statuses(lines(t, from("a"))))
	require.Equal(t, "true", from("b").Header.Get("Idempotent-Replayed"))
}

// An import that invites says so of each new user who has an address and no password, and of nobody else.
func TestImportInvites(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	addUser(t, c, "known", object{"email": "known@acme.test"})
	const lines = `{"username":"new","email":"new@acme.test"}
{"username":"no.mail"}
{"username":"has.one","email":"one@acme.test","password":"correct horse battery"}
{"username":"known","email":"known@acme.test","display_name":"Known"}
`
	weak := s.As("acme", auth.UsersRead, auth.UsersWrite)
	send(weak, ndjson, "?invite=true", lines).Problem(403, "forbidden")
	send(c, ndjson, "?invite=true&on_conflict=update", lines)
	send(c, ndjson, "", `{"username":"last","email":"last@acme.test"}`)
	invited := []string{}
	last := func(e stream.Event) bool { return bytes.Contains(e.Data, []byte("last@acme.test")) }
	for _, e := range s.EventsUntil(last) {
		var data struct {
			Invite bool
			Record struct{ Username string }
		}
		require.NoError(t, e.Read(&data))
		if data.Invite {
			require.Equal(t, "idp.user.created", e.Type)
			invited = append(invited, data.Record.Username)
		}
	}
	require.Equal(t, []string{"new"}, invited)
}
