package git

// refState is what is computed once per state of the references.
type refState struct{}

// pool is the bounded set of idle cat-file processes of a mirror.
type pool struct{}
