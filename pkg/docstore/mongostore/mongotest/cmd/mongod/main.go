// Command mongod is the simulated replica set in place of MongoDB, for a container: it understands the arguments that
// docker-compose.yml gives to mongod, and keeps its data in memory. It listens for others, who find it at -address.
//
//	mongod --replSet rs0 --bind_ip_all --setParameter transactionLifetimeLimitSeconds=30
//
// Called mongosh, it asks the server in the same container whether it takes writes, and exits with 1 if not, whatever
// its arguments are. The replica set needs no initiation.
//
// It exits with 1 if it was asked for something that it does not know, which it names.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/idplatform/idplatform/pkg/docstore/mongostore/mongotest/replicaset"
)

const port = "27017"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if name := filepath.Base(os.Args[0]); name == "mongosh" {
		err = healthy(ctx, "127.0.0.1:"+port)
	} else {
		err = serve(ctx, os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve runs the replica set until ctx ends.
func serve(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	set, err := replicaset.Start(o)
	if err != nil {
		return err
	}
	fmt.Printf("simulated replica set %s at %s\n", o.Name, o.Address)
	<-ctx.Done()
	return set.Close()
}

func parse(args []string) (replicaset.Options, error) {
	var o replicaset.Options
	flags := flag.NewFlagSet("mongod", flag.ContinueOnError)
	flags.StringVar(&o.Name, "replSet", "", "the set's name")
	flags.StringVar(&o.Address, "address", "mongo:"+port, "where clients find the server")
	all := flags.Bool("bind_ip_all", false, "listen for others")
	flags.Func("setParameter", "transactionLifetimeLimitSeconds=n", func(text string) error {
		seconds, ok := strings.CutPrefix(text, "transactionLifetimeLimitSeconds=")
		n, err := strconv.Atoi(seconds)
		if !ok || err != nil {
			return errors.New("the only parameter is transactionLifetimeLimitSeconds")
		}
		o.Lifetime = time.Duration(n) * time.Second
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.Listen = "127.0.0.1:" + port; *all {
		o.Listen = ":" + port
	}
	return o, nil
}

// healthy fails if the server at the address takes no writes.
func healthy(ctx context.Context, address string) error {
	client, err := mongo.Connect(options.Client().SetHosts([]string{address}).SetDirect(true).
		SetTimeout(5 * time.Second))
	if err != nil {
		return err
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
	var answer struct {
		Writable bool `bson:"isWritablePrimary"`
	}
	if err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&answer); err != nil {
		return err
	}
	if !answer.Writable {
		return errors.New("the server takes no writes")
	}
	return nil
}
