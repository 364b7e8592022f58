package catalog

import (
	"fmt"
	"reflect"
	"strings"
)

// eventRule tells which event a command leaves.
type eventRule struct {
	typ     reflect.Type
	always  bool                      // also when a node acts on its own
	event   func(*txn, Command) Event // builds the event from the state before the change; an empty Action means no event; nil: never an event
	whyNone string                    // the reason why it never leaves an event
}

// eventOnRequest returns a rule: the command leaves an event if a person requests it.
func eventOnRequest[T any](tell func(*txn, *T) Event) eventRule {
	return eventRule{typ: reflect.TypeFor[T](), event: func(t *txn, c Command) Event { return tell(t, any(c).(*T)) }}
}

// eventAlways returns a rule: the command always leaves an event.
func eventAlways[T any](tell func(*txn, *T) Event) eventRule {
	r := eventOnRequest(tell)
	r.always = true
	return r
}

// noEvent returns a rule: the command leaves no event. why gives the reason.
func noEvent[T any](why string) eventRule {
	return eventRule{typ: reflect.TypeFor[T](), whyNone: why}
}

const (
	byIndexing = "a step of indexing or syncing, which a node takes by itself"
	byNodes    = "nodes keep themselves and what they hold in the catalog by it"
	byUse      = "notes that something was used"
	byHost     = "what a code host says of who may read, again and again"
	byAsking   = "a step of answering a question, which is an access and changes no right"
)

// eventRules has a row for every command. Messages must not contain secrets: names and roles are
// fine, but no hashes, tokens, or text of a configuration.
//
// Events are part of the state. Two versions that serve one cluster must write the same events, so
// a row never changes what it writes.
var eventRules = []eventRule{
	noEvent[Noop]("changes nothing"),
	noEvent[InitCluster]("there is nobody yet"),
	eventAlways(func(t *txn, c *SetConfig) Event {
		// Nodes that start with the same file all propose it. Only one event is left.
		if t.inForce(c.Hash) {
			return Event{}
		}
		return Event{Action: "config.changed", TargetType: "configuration", Target: c.Hash, Message: Counted(len(c.Connections), "connection", "connections")}
	}),
	eventOnRequest(func(t *txn, c *EnqueueJob) Event { return t.jobEvent("job.requested", c.Kind, c.Subject) }),
	noEvent[GrantJob](byIndexing),
	noEvent[FinishJob](byIndexing),
	noEvent[ReleaseJob](byIndexing),
	noEvent[RevokeJob](byIndexing),
	noEvent[SyncPage](byIndexing),
	noEvent[FinishSync](byIndexing),
	noEvent[FinishIndex](byIndexing),
	noEvent[FinishCollect](byIndexing),
	eventAlways(func(_ *txn, c *CreateKey) Event {
		return Event{Action: "api_key.created", TargetType: "api_key", Target: c.Key.ID, Message: c.Key.Name}
	}),
	eventAlways(func(t *txn, c *RevokeKey) Event {
		e := Event{Action: "api_key.deleted", TargetType: "api_key", Target: c.ID}
		if k := t.keys.Get(c.ID); k != nil {
			e.Message = k.Name
		}
		return e
	}),
	noEvent[TouchKeys](byUse),
	noEvent[PutMember](byNodes),
	eventAlways(func(_ *txn, c *SetMemberState) Event {
		action := "node.undrained"
		if c.State == MemberDraining {
			action = "node.drained"
		}
		return Event{Action: action, TargetType: "node", Target: c.ID}
	}),
	eventAlways(func(_ *txn, c *RemoveMember) Event {
		return Event{Action: "node.removed", TargetType: "node", Target: c.ID}
	}),
	noEvent[Place](byNodes),
	noEvent[Confirm](byNodes),
	eventOnRequest(func(_ *txn, c *SetSecret) Event {
		return Event{Action: "secret.set", TargetType: "secret", Target: c.Name}
	}),
	noEvent[CheckHash](byNodes),
	eventAlways(func(t *txn, c *RaiseLevel) Event {
		return Event{Action: "cluster.level_raised", TargetType: "cluster", Target: t.meta.ClusterID, Message: fmt.Sprintf("level %d of version %s", c.Level, c.Version)}
	}),
	noEvent[FinishPack](byIndexing),
	eventAlways(func(_ *txn, c *AcceptListing) Event {
		return Event{Action: "connection.listing_accepted", TargetType: "connection", Target: c.Connection}
	}),
	noEvent[FinishListing](byIndexing),
	eventAlways(func(_ *txn, c *SetHistory) Event {
		does := "excluded"
		switch {
		case c.Remove:
			does = "rule removed"
		case c.Include:
			does = "included"
		}
		return Event{Action: "history.set", TargetType: "repositories", Target: c.Glob, Message: does}
	}),
	eventAlways((*txn).accountEvent),
	eventAlways(func(t *txn, c *DeleteAccount) Event {
		return Event{Action: "user.deleted", TargetType: "user", Target: c.ID, Message: t.emailOf(c.ID)}
	}),
	eventOnRequest(func(_ *txn, c *SetGrants) Event {
		return Event{Action: "permissions.changed", TargetType: "user", Target: c.Account,
			Message: "by " + c.Source + ": " + Counted(len(c.Add), "repository", "repositories") + " added, " + fmt.Sprint(len(c.Remove)) + " taken away"}
	}),
	eventAlways(func(_ *txn, c *PutSession) Event {
		e := Event{Action: "session.created", TargetType: "user", Target: c.Session.Account, Message: "session " + c.Session.ID + " by " + c.Session.Method}
		if c.Session.Account == "" {
			e.TargetType, e.Target = "api_key", c.Session.Key
		}
		return e
	}),
	eventAlways(func(t *txn, c *EndSessions) Event {
		e := Event{Action: "session.ended", TargetType: "session", Target: strings.Join(c.IDs, " ")}
		if c.Account != "" {
			return Event{Action: "session.all_ended", TargetType: "user", Target: c.Account}
		}
		if len(c.IDs) == 1 {
			if s := t.sessions.Get(c.IDs[0]); s != nil {
				e.Message = "of " + s.Account
			}
		}
		return e
	}),
	noEvent[TouchSessions](byUse),
	eventAlways(func(_ *txn, c *SetPassword) Event {
		action := "user.password_changed"
		if c.Hash == "" {
			action = "user.password_removed"
		}
		return Event{Action: action, TargetType: "user", Target: c.Account}
	}),
	eventAlways(func(_ *txn, c *PutLink) Event {
		return Event{Action: "user.link_created", TargetType: "user", Target: c.Link.Account, Message: "link " + c.Link.ID}
	}),
	eventAlways(func(_ *txn, c *LinkIdentity) Event {
		return Event{Action: "account.linked", TargetType: "user", Target: c.Identity.Account, Message: c.Identity.Provider + " " + c.Identity.Login}
	}),
	eventAlways(func(_ *txn, c *UnlinkIdentity) Event {
		return Event{Action: "account.unlinked", TargetType: "user", Target: c.Account, Message: c.Provider}
	}),
	eventAlways(func(_ *txn, c *Join) Event {
		return Event{Action: "user.created", TargetType: "user", Target: c.Account.ID, Message: c.Account.Email + ", " + c.Account.State.String() + ", by " + c.Identity.Provider}
	}),
	noEvent[FinishRepoAccess](byHost),
	noEvent[FinishReaderAccess](byHost),
	eventAlways(func(_ *txn, c *RefuseReader) Event {
		return Event{Action: "permissions.cleared", TargetType: "reader", Target: c.Site + " " + c.Subject, Message: "the host refuses them"}
	}),
	noEvent[AgeAccess](byHost),
	eventOnRequest(func(_ *txn, c *PutHostToken) Event {
		return Event{Action: "account.authorized", TargetType: "user", Target: c.Account, Message: "to ask " + c.Token.Site + " in their name"}
	}),
	noEvent[SayPermissionSync](byNodes),
	noEvent[Attribute]("says who makes the changes behind it"),
	eventAlways(func(_ *txn, c *NoteEvent) Event {
		return Event{Action: c.Action, TargetType: c.TargetType, Target: c.Target, Message: c.Message}
	}),
	eventAlways(func(_ *txn, c *PutConsent) Event {
		return Event{
			Action:     "oauth.consented",
			Actor:      Actor{ID: c.Consent.Account},
			TargetType: "oauth_grant",
			Target:     c.Consent.ID,
			Message:    c.Consent.Name + " at " + c.Consent.Host,
		}
	}),
	noEvent[RotateConsent](byUse),
	eventAlways(func(_ *txn, c *EndConsents) Event {
		if c.Account != "" {
			return Event{Action: "oauth.all_revoked", TargetType: "user", Target: c.Account}
		}
		return Event{Action: "oauth.revoked", TargetType: "oauth_grant", Target: strings.Join(c.IDs, " ")}
	}),
	noEvent[DropSecrets](byNodes),
	noEvent[BeginTurn](byAsking),
	noEvent[EndTurn](byAsking),
	eventOnRequest(func(_ *txn, c *ChangeThread) Event {
		e := Event{Action: "chat.changed", TargetType: "chat", Target: c.Thread, Message: "private"}
		if c.Public {
			e.Message = "public"
		}
		return e
	}),
	eventOnRequest(func(_ *txn, c *DeleteThread) Event {
		return Event{Action: "chat.deleted", TargetType: "chat", Target: c.Thread}
	}),
	eventOnRequest(func(_ *txn, c *ForkThread) Event {
		return Event{Action: "chat.duplicated", TargetType: "chat", Target: c.Thread, Message: "of " + c.From}
	}),
	eventAlways(func(_ *txn, c *SealConfig) Event {
		return Event{Action: "config.sealed", TargetType: "configuration", Target: c.Hash, Message: "under the newest cluster key"}
	}),
	eventOnRequest(func(t *txn, c *CancelJob) Event { return t.jobEvent("job.canceled", c.Kind, c.Subject) }),
	eventOnRequest(func(_ *txn, c *PutWatch) Event {
		action := "watch.changed"
		if c.New {
			action = "watch.created"
		}
		return Event{Action: action, TargetType: "watch", Target: c.Watch.ID, Message: c.Watch.Name}
	}),
	eventOnRequest(func(t *txn, c *DeleteWatch) Event {
		e := Event{Action: "watch.deleted", TargetType: "watch", Target: c.ID}
		if w := t.watches.Get(c.ID); w != nil {
			e.Message = w.Name
		}
		return e
	}),
	noEvent[FinishChecks](byIndexing),
	noEvent[NoteDeliveries](byNodes),
}

var eventRuleByType = func() map[reflect.Type]eventRule {
	m := map[reflect.Type]eventRule{}
	for _, r := range eventRules {
		m[r.typ] = r
	}
	return m
}()

// ruleOf returns the rule of a command, or the zero rule.
func ruleOf(c Command) eventRule { return eventRuleByType[reflect.TypeOf(c).Elem()] }

// accountEvent describes a PutAccount by its most important change.
func (t *txn) accountEvent(c *PutAccount) Event {
	a, old := &c.Account, t.accounts.Get(c.Account.ID)

	action := "user.changed"
	switch {
	case old == nil:
		action = "user.created"

	// A change of state matters more than a change of role with it.
	case old.State == AccountPending && a.State == AccountActive:
		action = "user.approved"
	case old.State != a.State && a.State == AccountSuspended:
		action = "user.suspended"
	case old.State != a.State && a.State == AccountActive:
		action = "user.reactivated"

	case old.Role != a.Role:
		action = "user.role_changed"
	}

	return Event{Action: action, TargetType: "user", Target: a.ID, Message: a.Email + ", " + a.Role.String() + ", " + a.State.String()}
}

// jobEvent names the repository or connection of a job.
func (t *txn) jobEvent(action string, kind JobKind, subject string) Event {
	e := Event{Action: action, TargetType: "job", Target: subject, Message: kind.String()}
	if r := t.repos.Get(SubjectRepo(subject)); r != nil {
		e.TargetType, e.Target = "repository", r.Name
	} else if t.connections.Get(subject) != nil {
		e.TargetType = "connection"
	}
	return e
}

func (t *txn) emailOf(account string) string {
	if a := t.accounts.Get(account); a != nil {
		return a.Email
	}
	return ""
}
