package idp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Config says how a Client reaches the platform. Only URL is needed.
type Config struct {
	URL    string      // such as https://idp.example
	Tokens TokenSource // nil: for the operations that need no token
	Tenant string      // of all calls; "": the token's

	HTTP      *http.Client  // nil: http.DefaultClient. Its Timeout ends event streams, too.
	UserAgent string        // "": idplatform-go
	MaxWait   time.Duration // how long a call waits, all in all, to be repeated; 0: 30 s, negative: not at all
	Timeout   time.Duration // how long an answer may take once a request is sent; 0: 1 min, negative: for ever
	Attempts  int           // how often a request is sent, and more often if an answer has Retry-After; 0: 4, 1: once
}

// Client calls the platform. It can be used by many goroutines.
type Client struct {
	config Config
	base   *url.URL
	sleep  func(context.Context, time.Duration) error
}

// New makes a Client. It sends nothing.
func New(config Config) (*Client, error) {
	base, err := url.Parse(strings.TrimSuffix(config.URL, "/"))
	if err != nil {
		return nil, fmt.Errorf("the platform's URL: %w", err)
	}
	if base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.RawQuery != "" || base.User != nil {
		return nil, errors.New("the platform's URL must be http(s)://host, perhaps with a path")
	}
	if config.HTTP == nil {
		config.HTTP = http.DefaultClient
	}
	if config.UserAgent == "" {
		config.UserAgent = "idplatform-go"
	}
	client := *config.HTTP
	if client.CheckRedirect == nil {
		client.CheckRedirect = sameMethod
	}
	config.HTTP = &client
	if config.Timeout == 0 {
		config.Timeout = time.Minute
	}
	if config.MaxWait == 0 {
		config.MaxWait = 30 * time.Second
	}
	if config.Attempts == 0 {
		config.Attempts = 4
	}
	return &Client{config: config, base: base, sleep: sleep}, nil
}

// sameMethod follows no redirect that would make a GET of a change: it would be answered with 200 and not made.
func sameMethod(next *http.Request, before []*http.Request) error {
	if next.Method != before[0].Method {
		return http.ErrUseLastResponse
	}
	if len(before) >= maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	return nil
}

const maxRedirects = 10

// Request is a call of any operation, as Client.Do takes it.
type Request struct {
	Method, Path string // Path is escaped: /v1/users/1048577
	Query        url.Values
	Header       http.Header
	Body         io.Reader // what cannot ReadAt and Seek is sent once
	ContentType  string
	Momentary    bool // a POST whose answer is not kept (x-momentary): it has no Idempotency-Key and can be repeated
	Open         bool // the operation needs no token

	answerHeader *http.Header
	onBreak      func(error)
	stream       bool // the caller reads the body as it comes
}

// Stream makes Do return as soon as the answer begins, whatever it is. Otherwise the whole body is there when Do
// returns, and is JSON: a connection that breaks meanwhile, and a page of a proxy, are no answer, and the request is
// repeated.
func (r *Request) Stream() { r.stream = true }

func (r *Request) setQuery(name, value string) {
	query := url.Values{}
	for n, v := range r.Query {
		query[n] = v
	}
	query.Set(name, value)
	r.Query = query
}

func (r *Request) json(body any) error {
	text, err := json.Marshal(body)
	r.Body, r.ContentType = bytes.NewReader(text), "application/json"
	return err
}

// form makes the form of a struct whose members are strings.
func (r *Request) form(body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	var members map[string]string
	if err := json.Unmarshal(text, &members); err != nil {
		return err
	}
	form := url.Values{}
	for name, value := range members {
		form.Set(name, value)
	}
	r.Body, r.ContentType = strings.NewReader(form.Encode()), "application/x-www-form-urlencoded"
	return nil
}

// queryOf makes a query of a Params struct.
func queryOf(params any) url.Values {
	query, v := url.Values{}, reflect.ValueOf(params)
	for i := range v.NumField() {
		name, field := v.Type().Field(i).Tag.Get("query"), v.Field(i)
		if field.IsZero() {
			continue
		}
		switch value := reflect.Indirect(field).Interface().(type) {
		case string:
			query.Set(name, value)
		case int64:
			query.Set(name, strconv.FormatInt(value, 10))
		case bool:
			query.Set(name, strconv.FormatBool(value))
		}
	}
	return query
}

// do sends a request whose answer says nothing.
func (c *Client) do(ctx context.Context, r Request, options []Option) error {
	response, err := c.Do(ctx, r, options...)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// send sends a request and decodes its answer.
func send[T any](ctx context.Context, c *Client, r Request, options []Option) (*T, error) {
	response, err := c.Do(ctx, r, options...)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	into := new(T)
	if response.StatusCode == http.StatusNotModified {
		return nil, ErrNotModified
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return nil, fmt.Errorf("%s %s: the answer is not as documented: %w", r.Method, r.Path, err)
	}
	return into, nil
}

// value is the result of send without the pointer.
func value[T any](v *T, err error) (T, error) {
	if err != nil {
		return *new(T), err
	}
	return *v, nil
}

// ErrNotModified is the error of a call with IfNoneMatch if the record still has that ETag.
var ErrNotModified = errors.New("not modified")

// Download is an answer that is not JSON: an image, or lines of a file. Close it.
type Download struct {
	io.ReadCloser
	ContentType string
}

func (c *Client) download(ctx context.Context, r Request, options []Option) (*Download, error) {
	r.stream = true
	response, err := c.Do(ctx, r, options...)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusNotModified {
		return nil, errors.Join(ErrNotModified, response.Body.Close())
	}
	return &Download{response.Body, response.Header.Get("Content-Type")}, nil
}
