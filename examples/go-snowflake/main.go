// Prints Snowflakes. Their node id is leased from `randflake serve --layout …` over HTTP:
//
//	go run . --url http://127.0.0.1:8080 --count 10 --threads 4
//
// RANDFLAKE_SERVE_TOKEN is the token of the service, if it has one. For your own program, take
// generator.go and lease.go.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	url := flag.String("url", "http://127.0.0.1:8080", "where the service is")
	count := flag.Int64("count", 1, "how many ids to print")
	threads := flag.Int("threads", 1, "how many goroutines make them")
	ttl := flag.Int("ttl", 60, "length of the lease, in seconds")
	flag.Parse()
	if *threads < 1 {
		*threads = 1
	}
	if err := run(*url, *count, *threads, time.Duration(*ttl)*time.Second); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(url string, count int64, threads int, ttl time.Duration) (err error) {
	generator, err := NewGenerator(url, os.Getenv("RANDFLAKE_SERVE_TOKEN"), ttl)
	if err != nil {
		return err
	}
	defer func() {
		if failed := generator.Close(); failed != nil { // the ids are right all the same
			fmt.Fprintln(os.Stderr, "the node id is free only after the end of its lease:", failed)
		}
	}()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ids, failed := make(chan uint64, 1024), make(chan error, threads)
	left := count
	for i := 0; i < threads; i++ {
		go func() {
			for atomic.AddInt64(&left, -1) >= 0 {
				id, err := generator.Next()
				if err != nil {
					failed <- err
					return
				}
				ids <- id
			}
		}()
	}
	out := bufio.NewWriter(os.Stdout)
	for printed := int64(0); printed < count && err == nil; printed++ {
		select {
		case id := <-ids:
			_, err = fmt.Fprintln(out, id)
		case err = <-failed:
		case <-signals:
			err = errors.New("interrupted")
		}
	}
	if failed := out.Flush(); err == nil {
		err = failed
	}
	return err
}
