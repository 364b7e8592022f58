//go:build !gatehole

package account

// holed reports whether the call of the gate under way is to be left out. Only a
// build for the mutation test of the oracle has such holes (-tags gatehole).
func holed() bool { return false }
