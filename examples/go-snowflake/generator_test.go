package main

import (
	"testing"
	"time"
)

// A generator under a lease of 10 seconds, whose clock shows what now is set to.
func generatorAt(now *int64) *Generator {
	layout := Layout{
		Fields:   [][2]any{{"time", 39.0}, {"sequence", 1.0}, {"node", 16.0}},
		TickMS:   10,
		EpochMS:  1_600_000_000_000,
		Sequence: "zero",
	}
	if err := layout.place(); err != nil {
		panic(err)
	}
	granted := Granted{NodeIDs: []uint64{7}, Start: 1_700_000_000, EndExclusive: 1_700_000_010}
	*now = granted.Start * 1000
	return &Generator{layout: layout, granted: granted, usedUntil: granted.Start, clock: func() int64 { return *now }}
}

func expect(t *testing.T, g *Generator, wantID uint64, wantWait time.Duration, fails bool) {
	t.Helper()
	id, wait, err := g.try()
	if id != wantID || wait != wantWait || (err != nil) != fails {
		t.Fatalf("got %d, %v, %v", id, wait, err)
	}
}

const first = 10_000_000_000<<17 | 7 // in the first tick of the lease
const sequence = 1 << 16
const tick = 1 << 17

func TestATickHasEachSequenceOnce(t *testing.T) {
	var now int64
	g := generatorAt(&now)
	expect(t, g, first, 0, false)
	now += 9
	expect(t, g, first+sequence, 0, false)
	expect(t, g, 0, time.Millisecond, false)
	now++
	expect(t, g, first+tick, 0, false)
}

func TestNoIDIsOfASecondOutsideTheLease(t *testing.T) {
	var now int64
	g := generatorAt(&now)
	now--
	expect(t, g, 0, time.Millisecond, false)
	now += 10_000
	expect(t, g, first+999*tick, 0, false)
	now++
	expect(t, g, 0, 0, true)
}

func TestTicksDoNotFollowAClockThatStepsBack(t *testing.T) {
	var now int64
	g := generatorAt(&now)
	now += 5000
	expect(t, g, first+500*tick, 0, false)
	now -= 1000
	expect(t, g, 0, time.Second, false)
	now -= 3_600_000
	expect(t, g, 0, 0, true)
	now += 3_601_000
	expect(t, g, first+500*tick+sequence, 0, false)
}

func TestTicksDoNotGoBackWithAnotherLease(t *testing.T) {
	var now int64
	g := generatorAt(&now)
	now += 5000
	expect(t, g, first+500*tick, 0, false)
	g.granted = Granted{NodeIDs: []uint64{8}, Start: 1_700_000_003, EndExclusive: 1_700_000_020}
	expect(t, g, first+1+500*tick+sequence, 0, false)
	g.granted.Start = 1_700_000_006
	expect(t, g, 0, time.Second, false)
}

func TestWhatIsReleasedBeginsAfterTheLastID(t *testing.T) {
	var now int64
	g := generatorAt(&now)
	if g.usedUntil != 1_700_000_000 {
		t.Fatal(g.usedUntil)
	}
	now += 5999
	expect(t, g, first+599*tick, 0, false)
	if g.usedUntil != 1_700_000_006 {
		t.Fatal(g.usedUntil)
	}
	g.closed = true
	expect(t, g, 0, 0, true)
}

func TestALayoutWithTicksInTwoSecondsIsRefused(t *testing.T) {
	for _, layout := range []Layout{
		{TickMS: 10, EpochMS: 5, Sequence: "zero"},
		{TickMS: 2000, Sequence: "zero"},
		{TickMS: 1, Sequence: "continuing"},
		{TickMS: 1, Sequence: []any{"random", 100.0}},
	} {
		layout.Fields = [][2]any{{"time", 41.0}, {"node", 10.0}, {"sequence", 12.0}}
		if layout.place() == nil {
			t.Fatal(layout)
		}
	}
}
