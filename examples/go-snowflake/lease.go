package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"
)

// keep renews the lease, and takes another one if it is lost.
func (g *Generator) keep() {
	defer close(g.done)
	nextToken, wait := randomToken(), g.untilRenewal()
	for {
		select {
		case <-g.stop:
			return
		case <-time.After(wait):
		}
		switch err := g.lease(nextToken); {
		case err == nil:
			nextToken, wait = randomToken(), g.untilRenewal()
		case errors.Is(err, errLost):
			nextToken, wait = "", 0 // meanwhile, ids go on to the end that is known
		default: // a renewal is repeated with the same token, and so done once
			fmt.Fprintln(os.Stderr, "the lease is not renewed yet:", err)
			if wait = retryAfter(err); wait == 0 {
				wait = time.Second
			}
		}
	}
}

// untilRenewal returns a third of what is left: the answer to a repeated renewal has its first end.
func (g *Generator) untilRenewal() time.Duration {
	left := time.Duration(g.granted.EndExclusive*1000-g.clock()) * time.Millisecond
	if left > g.ttl {
		left = g.ttl
	}
	return left / 3
}

// lease renews the lease, or takes another one if there is no token for a renewal.
func (g *Generator) lease(nextToken string) error {
	// The service compares its clock with now, also when a renewal is repeated: its token stays.
	b := body{"ttl_seconds": int(g.ttl.Seconds()), "now": g.clock() / 1000}
	path := "/v1/leases"
	if nextToken == "" {
		host, _ := os.Hostname()
		b["count"], b["note"] = 1, fmt.Sprintf("%s:%d", host, os.Getpid())
	} else {
		path, b["next_token"] = g.path("renew"), nextToken
	}
	var got Granted
	if err := g.ask("POST", path, b, &got); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if nextToken == "" {
		if len(got.NodeIDs) != 1 || got.NodeIDs[0] > g.layout.node.max() {
			return fmt.Errorf("not one node id of this layout: %v", got.NodeIDs)
		}
		g.usedUntil = got.Start
	} else if len(got.NodeIDs) != 1 || got.NodeIDs[0] != g.granted.NodeIDs[0] || got.Start != g.granted.Start {
		return errLost
	}
	g.granted = got
	return nil
}

func (g *Generator) path(operation string) string {
	return "/v1/leases/" + url.PathEscape(g.granted.Lease) + "/" + operation
}

type body map[string]any

// errLost is status 410: the lease was released, or others have its node id.
var errLost = errors.New("the lease is lost")

// refusal is another error that the service answered with.
type refusal struct {
	text  string
	after time.Duration
}

func (r *refusal) Error() string { return r.text }

// retryAfter returns when the service wants to be asked again, or 0.
func retryAfter(err error) time.Duration {
	if r := (*refusal)(nil); errors.As(err, &r) {
		return r.after
	}
	return 0
}

func (g *Generator) ask(method, path string, b body, into any) error {
	var content []byte
	if b != nil {
		content, _ = json.Marshal(b) // texts and numbers only
	}
	request, err := http.NewRequest(method, g.url+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	if g.token != "" {
		request.Header.Set("Authorization", "Bearer "+g.token)
	}
	answer, err := (&http.Client{Timeout: patience}).Do(request)
	if full := (*url.Error)(nil); errors.As(err, &full) {
		return full.Err // without the URL, which has the lease in it
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusGone {
		return errLost
	}
	if answer.StatusCode >= 300 {
		var said struct{ Code, Message string }
		_ = json.NewDecoder(answer.Body).Decode(&said) // a proxy may say something else
		after, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		text := fmt.Sprintf("%s: %s: %s", answer.Status, said.Code, said.Message)
		return &refusal{text, time.Duration(after) * time.Second}
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

func randomToken() string {
	bytes := make([]byte, 16)
	if _, err := rand.Read(bytes); err != nil {
		panic(err) // without a random source there is no safe token
	}
	return hex.EncodeToString(bytes)
}
