package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// measured is the result of one run of the load generator.
type measured struct {
	perSecond float64
	p50, p99  time.Duration
	requests  int
}

// generate sends requests over keep-alive connections, one for each worker, for the given time, and fails on any
// response that is an error. It does as little as possible itself: it uses raw sockets and requests made in advance,
// and drops the responses it reads.
func generate(addr string, workers int, during time.Duration, next func(worker, n int) []byte) (measured, error) {
	var all sync.WaitGroup
	latencies := make([][]time.Duration, workers)
	errs := make([]error, workers)
	var stop atomic.Bool
	start := time.Now()
	timer := time.AfterFunc(during, func() { stop.Store(true) })
	defer timer.Stop()
	for w := range workers {
		all.Go(func() {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				errs[w] = err
				return
			}
			defer conn.Close()
			in := bufio.NewReaderSize(conn, 64<<10)
			for n := 0; !stop.Load(); n++ {
				request := next(w, n)
				if request == nil {
					return
				}
				sent := time.Now()
				if _, err := conn.Write(request); err != nil {
					errs[w] = err
					return
				}
				if err := readAnswer(in); err != nil {
					errs[w] = err
					return
				}
				latencies[w] = append(latencies[w], time.Since(sent))
			}
		})
	}
	all.Wait()
	took := time.Since(start)
	every := slices.Concat(latencies...)
	if err := errors.Join(errs...); err != nil || len(every) == 0 {
		return measured{}, fmt.Errorf("load: %d answers: %w", len(every), err)
	}
	slices.Sort(every)
	return measured{
		perSecond: float64(len(every)) / took.Seconds(), requests: len(every),
		p50: every[len(every)/2], p99: every[len(every)*99/100],
	}, nil
}

// readAnswer reads one HTTP/1.1 response with a Content-Length. Its status must be 2xx or 3xx.
func readAnswer(in *bufio.Reader) error {
	start, err := in.Peek(len("HTTP/1.1 200"))
	if err == nil && !bytes.ContainsAny(start[len("HTTP/1.1 "):][:1], "23") {
		line, _ := in.ReadSlice('\n')
		status := string(bytes.TrimSpace(line))
		rest, _ := io.ReadAll(io.LimitReader(in, int64(in.Buffered())))
		return fmt.Errorf("%s: %s", status, rest)
	}
	return readMessage(in)
}

// readMessage reads one HTTP/1.1 message with a Content-Length or, if its status is 204, without a body.
func readMessage(in *bufio.Reader) error {
	length := -1
	if start, err := in.Peek(len("HTTP/1.1 204")); err == nil && string(start) == "HTTP/1.1 204" {
		length = 0
	}
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		if name, value, ok := bytes.Cut(line, []byte(": ")); ok && bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return errors.New("the message has no Content-Length")
	}
	_, err := in.Discard(length)
	return err
}

// get makes a GET request; post and patch make requests with a JSON body.
func get(path, token string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n\r\n", path, token)
}

func post(path, token, body string) []byte  { return withBody("POST", path, token, body) }
func patch(path, token, body string) []byte { return withBody("PATCH", path, token, body) }

func withBody(method, path, token, body string) []byte {
	return fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		method, path, token, len(body), body)
}
