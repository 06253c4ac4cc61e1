package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// run sends the load until the time, the number of requests or ctx ends.
func (l *load) run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, l.duration)
	defer cancel()
	l.begun = time.Now()
	var senders, teller sync.WaitGroup
	for range l.clients {
		senders.Go(func() { l.sendOn(ctx) })
	}
	done := make(chan struct{})
	teller.Go(func() { l.tell(done) })
	senders.Wait()
	l.took = time.Since(l.begun)
	close(done)
	teller.Wait()
}

// sendOn is one connection.
func (l *load) sendOn(ctx context.Context) {
	total := 0
	for _, k := range l.kinds {
		total += k.weight
	}
	r := rand.New(rand.NewPCG(rand.Uint64(), 1)) //nolint:gosec // which request is next is no secret
	for {
		n := l.sent.Add(1)
		due := time.Now()
		if l.rate > 0 {
			due = l.begun.Add(time.Duration(n-1) * time.Second / time.Duration(l.rate))
			wait := time.NewTimer(time.Until(due))
			select {
			case <-wait.C:
			case <-ctx.Done():
				wait.Stop()
			}
		}
		if ctx.Err() != nil || n > l.requests {
			l.sent.Add(-1)
			return
		}
		l.one(ctx, l.pick(r.IntN(total)), r, due)
	}
}

func (l *load) pick(n int) *kind {
	for _, k := range l.kinds {
		if n -= k.weight; n < 0 {
			return k
		}
	}
	return l.kinds[0]
}

// one sends one request. One that is under way when the time is over is answered, too.
func (l *load) one(ctx context.Context, k *kind, r *rand.Rand, due time.Time) {
	t := l.tenants[r.IntN(len(l.tenants))]
	method, path, body := k.make(t, r)
	_, err := l.send(context.WithoutCancel(ctx), t.name, method, path, body)
	took := time.Since(due)
	k.add(took, err != nil)
	l.all.add(took, err != nil)
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.firstError == "" {
			l.firstError = err.Error()
		}
	}
}

// tell prints a line from time to time, until done is closed.
func (l *load) tell(done <-chan struct{}) {
	every := time.NewTicker(l.every)
	defer every.Stop()
	last := l.begun
	for ended := false; !ended; {
		select {
		case <-every.C:
		case <-done:
			ended = true
		}
		now := time.Now()
		h := l.all.take(true)
		if h.n == 0 {
			continue
		}
		s := sample{
			at: now.Sub(l.begun), perSecond: float64(h.n) / now.Sub(last).Seconds(), p50: h.at(0.5), p99: h.at(0.99),
			errors: h.errors,
		}
		last = now
		l.look(&s)
		l.samples = append(l.samples, s)
		fmt.Printf("%5.0f s %8.0f/s   p50 %8s   p99 %8s   errors %d%s\n",
			s.at.Seconds(), s.perSecond, ms(s.p50), ms(s.p99), s.errors, s.inside())
	}
}

func (s *sample) inside() string {
	if s.memory == 0 {
		return ""
	}
	return fmt.Sprintf("   memory %.0f MiB   events to tell %.0f, to log %.0f", s.memory/(1<<20), s.backlog, s.audit)
}

// look reads the platform's metrics; without them the sample has none.
func (l *load) look(s *sample) {
	if l.admin == "" {
		return
	}
	answer, err := l.client.Get(l.admin + "/metrics")
	if err != nil {
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK {
		s.read(answer.Body)
	}
}

// read takes sums over all services from metrics in Prometheus' text form.
func (s *sample) read(metrics io.Reader) {
	for lines := bufio.NewScanner(metrics); lines.Scan(); {
		name, value, ok := strings.Cut(lines.Text(), " ")
		n, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil {
			continue
		}
		name, _, _ = strings.Cut(name, "{")
		switch name {
		case "process_resident_memory_bytes":
			s.memory += n
		case "idp_outbox_backlog":
			s.backlog += n
		case "idp_audit_log_behind_events":
			s.audit += n
		}
	}
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", d.Seconds()*1000) }

// table prints what each kind of request has cost.
func (l *load) table(out io.Writer) {
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "request\tnumber\t/s\tp50\tp95\tp99\tmax\terrors\t")
	var sum histogram
	row := func(name string, h *histogram) {
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%s\t%s\t%s\t%s\t%d\t\n", name, h.n, float64(h.n)/l.took.Seconds(),
			ms(h.at(0.5)), ms(h.at(0.95)), ms(h.at(0.99)), ms(h.max), h.errors)
	}
	for _, k := range l.kinds {
		h := k.take(false)
		for i, n := range h.counts {
			sum.counts[i] += n
		}
		sum.n, sum.errors, sum.max = sum.n+h.n, sum.errors+h.errors, max(sum.max, h.max)
		if h.n > 0 {
			row(k.name, h)
		}
	}
	row("all", &sum)
	_ = w.Flush()
	if n := len(l.samples); n > 1 && l.samples[0].memory > 0 {
		first, last := l.samples[0], l.samples[n-1]
		fmt.Fprintf(out, "\nmemory %.0f → %.0f MiB; at the end waited %.0f events for NATS, %.0f for the audit log\n",
			first.memory/(1<<20), last.memory/(1<<20), last.backlog, last.audit)
	}
}

func (l *load) failed() (n int64) {
	for _, k := range l.kinds {
		n += k.take(false).errors
	}
	return n
}

// draw writes the pictures.
func (l *load) draw(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // pictures are no secret
		return err
	}
	var p50, p99, memory, waiting []float64
	for _, s := range l.samples {
		p50, p99 = append(p50, s.p50.Seconds()*1000), append(p99, s.p99.Seconds()*1000)
		memory, waiting = append(memory, s.memory/(1<<20)), append(waiting, s.backlog+s.audit)
	}
	err := write(folder, "latency.svg", picture("latency, ms", l.took, line{"p99", p99}, line{"p50", p50}))
	if err != nil {
		return err
	}
	return write(folder, "memory.svg", picture("memory, MiB, and events that wait", l.took, line{"memory", memory},
		line{"events", waiting}))
}
