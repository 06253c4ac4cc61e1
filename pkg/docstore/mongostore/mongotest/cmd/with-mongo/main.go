// Command with-mongo runs a command with a MongoDB. It starts one in a container, passes its URI in IDP_TEST_MONGO_URI,
// and stops it afterwards. With -simulated it runs the simulated replica set of package replicaset in this process;
// -faults sets how often a command meets a write conflict, an expired transaction or an unknown result of a commit,
// chosen by -seed; -wire 21 makes it a server like MongoDB 7.0, without bulkWrite.
//
//	with-mongo go test ./services/...
//	with-mongo -simulated -faults 1000 go test ./services/...
//
// It exits with the command's code; with 2 if its arguments are wrong, with 3 if MongoDB does not start, and with 4 if
// it does not stop cleanly. The simulated replica set does not if it was asked for something that it does not know,
// which it names.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/idplatform/idplatform/pkg/docstore/mongostore/mongotest"
	"github.com/idplatform/idplatform/pkg/docstore/mongostore/mongotest/replicaset"
)

const (
	exitUsage   = 2
	exitNoMongo = 3
	exitUnclean = 4
	// graceful is how long an interrupted command may take to end.
	graceful = 10 * time.Second
)

func main() {
	simulated := flag.Bool("simulated", false, "run the command on a simulated replica set")
	faults := flag.Uint("faults", 0, "one in so many commands of the simulated replica set meets a fault; 0 for none")
	seed := flag.Uint64("seed", 1, "chooses which commands meet which fault")
	delay := flag.Duration("delay", 0, "the longest wait of an answer of the simulated replica set")
	wire := flag.Int("wire", 0, "maxWireVersion of the simulated replica set; 0 means that of MongoDB 8.0")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr,
			"usage: with-mongo [-simulated [-faults n] [-seed n] [-delay d] [-wire n]] command [argument ...]")
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(exitUsage)
	}
	start := mongotest.Start
	if *simulated {
		start = func(context.Context) (string, func() error, error) {
			return simulate(int(*faults), *seed, *delay, int32(*wire))
		}
	}
	os.Exit(run(start, flag.Arg(0), flag.Args()[1:]))
}

func simulate(faults int, seed uint64, delay time.Duration, wire int32) (uri string, stop func() error, err error) {
	o := replicaset.Options{Wire: wire}
	if faults > 0 || delay > 0 {
		// Many tests share the replica set, so it runs their commands as they arrive.
		o.Schedule = &replicaset.Schedule{Seed: seed, Settle: -1, Delay: delay, Every: faults}
	}
	if faults > 0 {
		o.Schedule.Faults, o.Schedule.MaxFaults = replicaset.Masked, math.MaxInt
	}
	set, err := replicaset.Start(o)
	if err != nil {
		return "", nil, err
	}
	// On a busy machine a connection may take longer than the 3 s after which a service takes a server for dead.
	return set.URI() + "&connectTimeoutMS=120000", set.Close, nil
}

func run(start func(context.Context) (string, func() error, error), name string, args []string) (code int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	uri, end, err := start(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "with-mongo: no MongoDB for", name+":", err)
		return exitNoMongo
	}
	defer func() {
		if err := end(); err != nil {
			fmt.Fprintln(os.Stderr, "with-mongo: stop MongoDB:", err)
			if code == 0 {
				code = exitUnclean
			}
		}
	}()
	command := exec.CommandContext(ctx, name, args...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), mongotest.EnvURI+"="+uri, mongotest.EnvRequired+"=1")
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = graceful
	err = command.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "with-mongo:", err)
		return 1
	}
	return 0
}
