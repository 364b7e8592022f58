package catalog

// State is the catalog. It belongs to one goroutine, which applies entries;
// readers use Views.
type State struct{}

// New returns an empty catalog.
func New() *State { return &State{} }

// Apply applies an entry and returns one result for each command.
func (s *State) Apply(e Entry) []Result { return nil }

// View returns the state as it is now. It costs the same for any size.
func (s *State) View() *View { return &View{s} }

// Refusal says why a command changed nothing.
type Refusal struct {
	Code   Code
	Reason string
}

func (r *Refusal) Error() string { return r.Reason }

// Code is the kind of a refusal.
type Code uint8

// The kinds of refusals.
const (
	Stale    Code = 1 // the fence or epoch is not the current one
	NotFound Code = 2
	Conflict Code = 3 // the state does not allow it
	Invalid  Code = 4 // the command is malformed
)
type txn struct{}

func (*InitCluster) apply(*txn) Result    { return Result{} }
func (*SetConfig) apply(*txn) Result      { return Result{} }
func (*EnqueueJob) apply(*txn) Result     { return Result{} }
func (*GrantJob) apply(*txn) Result       { return Result{} }
func (*FinishJob) apply(*txn) Result      { return Result{} }
func (*ReleaseJob) apply(*txn) Result     { return Result{} }
func (*RevokeJob) apply(*txn) Result      { return Result{} }
func (*SyncPage) apply(*txn) Result       { return Result{} }
func (*FinishSync) apply(*txn) Result     { return Result{} }
func (*FinishIndex) apply(*txn) Result    { return Result{} }
func (*FinishCollect) apply(*txn) Result  { return Result{} }
func (*CreateKey) apply(*txn) Result      { return Result{} }
func (*RevokeKey) apply(*txn) Result      { return Result{} }
func (*TouchKeys) apply(*txn) Result      { return Result{} }
func (*PutMember) apply(*txn) Result      { return Result{} }
func (*SetMemberState) apply(*txn) Result { return Result{} }
func (*RemoveMember) apply(*txn) Result   { return Result{} }
func (*Place) apply(*txn) Result          { return Result{} }
func (*Confirm) apply(*txn) Result        { return Result{} }
func (*SetSecret) apply(*txn) Result      { return Result{} }
func (*Noop) apply(*txn) Result           { return Result{} }
func (*CheckHash) apply(*txn) Result      { return Result{} }
