package main

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// patience is how long to wait for an answer, for a lease, or for a clock that is behind.
const patience = 10 * time.Second

// Layout is what an id is made of, as the service describes it.
type Layout struct {
	Fields   [][2]any // name and bits, from the top
	TickMS   int64    `json:"tick_ms"`
	EpochMS  int64    `json:"epoch_ms"`
	Sequence any

	time, node, sequence field
}

type field struct{ shift, bits uint }

func (f field) max() uint64 { return 1<<f.bits - 1 }

// place finds where the fields are, and refuses a layout that Generator is not made for.
func (l *Layout) place() error {
	if l.Sequence != "zero" || l.TickMS < 1 || 1000%l.TickMS != 0 || l.EpochMS%l.TickMS != 0 {
		return errors.New("only for layouts whose sequence begins at zero, and whose ticks each lie in one second")
	}
	places := map[string]*field{"time": &l.time, "node": &l.node, "sequence": &l.sequence}
	shift := uint(0)
	for i := len(l.Fields) - 1; i >= 0; i-- {
		name, _ := l.Fields[i][0].(string)
		bits, _ := l.Fields[i][1].(float64)
		if places[name] == nil {
			return fmt.Errorf("unknown field in the layout: %v", l.Fields[i])
		}
		*places[name] = field{shift, uint(bits)}
		shift += uint(bits)
	}
	if l.time.bits == 0 || l.node.bits == 0 || shift > 64 {
		return errors.New("a layout must have a time and a node id, in at most 64 bits")
	}
	return nil
}

// Granted is a lease of a node id, as the service last answered.
type Granted struct {
	Lease        string   // a secret: whoever has it can renew and release the lease
	NodeIDs      []uint64 `json:"node_ids"`
	Start        int64    // unix second
	EndExclusive int64    `json:"end_exclusive"`
}

// Generator makes ids under a lease, which it renews in the background. It makes no id twice, because
//
//   - the tick of each id lies in a second s with start <= s < end_exclusive, as the service last
//     answered; nothing else moves that end;
//   - ticks never go back in this process, not even from one lease to the next, and each
//     (tick, sequence) is used once;
//   - an id is decided under one lock, by one reading of the clock: the second that is compared with
//     the lease is the second in the id;
//   - a lease is for one run of one process: it is saved nowhere, and released after the last id.
type Generator struct {
	url, token string
	ttl        time.Duration
	layout     Layout
	clock      func() int64 // unix milliseconds
	stop, done chan struct{}

	mu        sync.Mutex // guards all below
	granted   Granted
	usedUntil int64  // the second after the last id of this lease, or its start
	tick      int64  // of the last id
	next      uint64 // sequence in that tick
	closed    bool
}

// NewGenerator takes a lease from the service.
func NewGenerator(url, token string, ttl time.Duration) (*Generator, error) {
	g := &Generator{url: url, token: token, ttl: ttl, stop: make(chan struct{}), done: make(chan struct{})}
	g.clock = func() int64 { return time.Now().UnixMilli() }
	if err := g.ask("GET", "/v1/layout", nil, &g.layout); err != nil {
		return nil, err
	}
	if err := g.layout.place(); err != nil {
		return nil, err
	}
	for until := time.Now().Add(patience); ; {
		err := g.lease("")
		if err == nil {
			go g.keep()
			return g, nil
		}
		again := retryAfter(err)
		if again == 0 || time.Now().Add(again).After(until) {
			return nil, err
		}
		time.Sleep(again)
	}
}

// Next returns an id. It waits while the ids of a tick are used up or the clock is a little behind,
// and fails if no lease covers the current second.
func (g *Generator) Next() (uint64, error) {
	for {
		id, wait, err := g.try()
		if err != nil || wait == 0 {
			return id, err
		}
		time.Sleep(wait)
	}
}

// try returns an id, or how long to wait for one.
func (g *Generator) try() (id uint64, wait time.Duration, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, l := g.clock(), &g.layout
	tick, first := (now-l.EpochMS)/l.TickMS, g.tick
	if g.next > l.sequence.max() {
		first++ // the ids of the last tick are used up
	}
	from := l.EpochMS + first*l.TickMS
	if start := g.granted.Start * 1000; from < start {
		from = start
	}
	wait = time.Duration(from-now) * time.Millisecond
	switch {
	case g.closed:
		return 0, 0, errors.New("the generator is closed")
	case now >= g.granted.EndExclusive*1000:
		return 0, 0, errors.New("no lease covers this second: the service did not renew it in time")
	case wait > patience:
		return 0, 0, fmt.Errorf("the clock is %v behind the last id or the start of the lease", wait)
	case wait > 0:
		return 0, wait, nil
	case uint64(tick) > l.time.max():
		return 0, 0, errors.New("the layout has no ids for the time that the clock shows")
	}
	if tick > g.tick {
		g.tick, g.next = tick, 0
	}
	id = uint64(tick)<<l.time.shift | g.granted.NodeIDs[0]<<l.node.shift | g.next<<l.sequence.shift
	g.next++
	g.usedUntil = now/1000 + 1
	return id, 0, nil
}

// Close stops for good, and then gives the node id back: others may use it from the next second on.
func (g *Generator) Close() error {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	close(g.stop)
	<-g.done
	// If a renewal has had no answer, the lease may have another name by now. This then releases
	// nothing, and the node id is free after its end.
	return g.ask("POST", g.path("release"), body{"used_until": g.usedUntil}, &body{})
}
