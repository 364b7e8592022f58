package chaostest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/anishathalye/porcupine"
)

// register is the history of keys that many clients make, revoke and look up
// at the same time at all nodes. For each name it must be one that a single
// copy could have had.
type register struct {
	began time.Time

	mu    sync.Mutex // guards the fields below
	round map[int]int
	doubt map[string]int // operations whose outcome is not known
	ops   []porcupine.Operation
}

// keyOp is what was done to a name; its outcome is a keyResult.
type keyOp struct {
	kind keyKind
	name string
}

type keyKind int

const (
	makeKey keyKind = iota
	revokeKey
	lookUpKey
)

type keyResult int

const (
	yes     keyResult = iota // made, revoked, there
	no                       // it exists, there is none, not there
	unknown                  // perhaps
)

// The bounds of the history of one name: the time to check one grows fast
// with the operations that may or may not have happened.
const (
	registerNames = 2
	maxDoubt      = 4
	maxKeyOps     = 60
)

// registrar is one of the clients of the register.
func (w *workload) registrar(ctx context.Context, client int, rng *rand.Rand) {
	for pause(ctx, 120*time.Millisecond) {
		name := w.keys.name(rng.IntN(registerNames))
		op := keyOp{keyKind(rng.IntN(3)), name}
		p := w.some(rng)
		called := time.Now()
		var err error
		var found bool
		switch op.kind {
		case makeKey:
			err = w.write(ctx, p, "POST", "/api/keys", map[string]string{"name": name})
		case revokeKey:
			err = w.write(ctx, p, "DELETE", "/api/keys/"+name, nil)
		case lookUpKey:
			found, err = w.hasKey(ctx, p, name)
		}
		if !errors.Is(err, syscall.ECONNREFUSED) { // else nobody heard of it
			w.keys.note(client, op, called, outcome(op, err, found))
		}
	}
}

func (w *workload) hasKey(ctx context.Context, p *process, name string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	var out []struct{ Name string }
	err := w.c.call(ctx, p, "GET", "/api/keys?consistent=true", nil, &out)
	return slices.ContainsFunc(out, func(k struct{ Name string }) bool { return k.Name == name }), err
}

func outcome(op keyOp, err error, found bool) keyResult {
	switch {
	case err == nil && (op.kind != lookUpKey || found):
		return yes
	case err == nil:
		return no
	case op.kind == makeKey && codeOf(err) == 409, op.kind == revokeKey && codeOf(err) == 404:
		return no
	}
	return unknown
}

// name is the current name of a slot.
func (r *register) name(slot int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.round == nil {
		r.began, r.round, r.doubt = time.Now(), map[int]int{}, map[string]int{}
	}
	name := func() string { return fmt.Sprintf("register%d-%d", slot, r.round[slot]) }
	of := 0
	for _, op := range r.ops {
		if op.Input.(keyOp).name == name() {
			of++
		}
	}
	if of >= maxKeyOps || r.doubt[name()] >= maxDoubt {
		r.round[slot]++
	}
	return name()
}

// note adds an operation that has ended. One whose outcome is not known may
// take effect at any later time; a look-up without an answer tells nothing.
func (r *register) note(client int, op keyOp, called time.Time, res keyResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	returned := time.Since(r.began).Nanoseconds()
	if res == unknown {
		if op.kind == lookUpKey {
			return
		}
		r.doubt[op.name]++
		returned = time.Hour.Nanoseconds()
	}
	r.ops = append(r.ops, porcupine.Operation{ClientId: client, Input: op, Call: called.Sub(r.began).Nanoseconds(), Output: res, Return: returned})
}

// keyModel is one copy of a key: the state is whether it is there.
var keyModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := map[string][]porcupine.Operation{}
		for _, op := range history {
			name := op.Input.(keyOp).name
			by[name] = append(by[name], op)
		}
		var parts [][]porcupine.Operation
		for _, p := range by {
			parts = append(parts, p)
		}
		return parts
	},
	Init: func() any { return false },
	Step: func(state, input, output any) (bool, any) {
		there, op, res := state.(bool), input.(keyOp), output.(keyResult)
		switch op.kind {
		case makeKey:
			return res == unknown || there == (res == no), true
		case revokeKey:
			return res == unknown || there == (res == yes), false
		}
		return there == (res == yes), there
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprint(input, " -> ", output) },
}

// check fails when no order of the operations explains what clients were told.
func (r *register) check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, part := range keyModel.Partition(r.ops) {
		if res := porcupine.CheckOperationsTimeout(keyModel, part, 30*time.Second); res != porcupine.Ok {
			slices.SortFunc(part, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
			text := ""
			for _, op := range part {
				in := op.Input.(keyOp)
				text += fmt.Sprintf("\n  %8.3fs to %8.3fs client %d %s -> %s", float64(op.Call)/1e9, float64(op.Return)/1e9, op.ClientId,
					[...]string{"make", "revoke", "look up"}[in.kind], [...]string{"yes", "no", "unknown"}[op.Output.(keyResult)])
			}
			return fmt.Errorf("the history of key %s is not linearizable (%s):%s", part[0].Input.(keyOp).name, res, text)
		}
	}
	return nil
}
