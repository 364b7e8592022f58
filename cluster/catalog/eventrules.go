package catalog

import (
	"fmt"
	"reflect"
	"strings"
)

// eventRule says what event a command leaves.
type eventRule struct {
	typ    reflect.Type
	always bool                      // also where a node does it by itself
	tell   func(*txn, Command) Event // from the state before the change, without an action where it will change nothing; nil: it leaves none
	silent string                    // why it leaves none
}

// told is the rule of a command that leaves an event when a person asks for it.
func told[T any](tell func(*txn, *T) Event) eventRule {
	return eventRule{typ: reflect.TypeFor[T](), tell: func(t *txn, c Command) Event { return tell(t, any(c).(*T)) }}
}

// alwaysTold is told of a change that is also told where a node makes it.
func alwaysTold[T any](tell func(*txn, *T) Event) eventRule {
	r := told(tell)
	r.always = true
	return r
}

// untold is the rule of a command that leaves no event, and why.
func untold[T any](why string) eventRule {
	return eventRule{typ: reflect.TypeFor[T](), silent: why}
}

const (
	byIndexing = "a step of indexing or syncing, which a node takes by itself"
	byNodes    = "nodes keep themselves and what they hold in the catalog by it"
	byUse      = "notes that something was used"
	byHost     = "what a code host says of who may read, again and again"
	byAsking   = "a step of answering a question, which is an access and changes no right"
)

// eventRules has a row for every command. What a message tells must be no
// secret: names and roles, never hashes, tokens or the text of a configuration.
//
// Events are part of the state, so two versions that serve one cluster have to
// write the same: what a row writes never changes.
var eventRules = []eventRule{
	untold[Noop]("changes nothing"),
	untold[InitCluster]("there is nobody yet"),
	alwaysTold(func(t *txn, c *SetConfig) Event {
		// Nodes that start with the same file may all propose it.
		if t.configured(c.Hash) {
			return Event{}
		}
		return Event{Action: "config.changed", TargetType: "configuration", Target: c.Hash, Message: Counted(len(c.Connections), "connection", "connections")}
	}),
	told(func(t *txn, c *EnqueueJob) Event { return t.jobEvent("job.requested", c.Kind, c.Subject) }),
	untold[GrantJob](byIndexing),
	untold[FinishJob](byIndexing),
	untold[ReleaseJob](byIndexing),
	untold[RevokeJob](byIndexing),
	untold[SyncPage](byIndexing),
	untold[FinishSync](byIndexing),
	untold[FinishIndex](byIndexing),
	untold[FinishCollect](byIndexing),
	alwaysTold(func(_ *txn, c *CreateKey) Event {
		return Event{Action: "api_key.created", TargetType: "api_key", Target: c.Key.ID, Message: c.Key.Name}
	}),
	alwaysTold(func(t *txn, c *RevokeKey) Event {
		e := Event{Action: "api_key.deleted", TargetType: "api_key", Target: c.ID}
		if k := t.keys.Get(c.ID); k != nil {
			e.Message = k.Name
		}
		return e
	}),
	untold[TouchKeys](byUse),
	untold[PutMember](byNodes),
	alwaysTold(func(_ *txn, c *SetMemberState) Event {
		action := "node.undrained"
		if c.State == MemberDraining {
			action = "node.drained"
		}
		return Event{Action: action, TargetType: "node", Target: c.ID}
	}),
	alwaysTold(func(_ *txn, c *RemoveMember) Event {
		return Event{Action: "node.removed", TargetType: "node", Target: c.ID}
	}),
	untold[Place](byNodes),
	untold[Confirm](byNodes),
	told(func(_ *txn, c *SetSecret) Event {
		return Event{Action: "secret.set", TargetType: "secret", Target: c.Name}
	}),
	untold[CheckHash](byNodes),
	alwaysTold(func(t *txn, c *RaiseLevel) Event {
		return Event{Action: "cluster.level_raised", TargetType: "cluster", Target: t.meta.ClusterID, Message: fmt.Sprintf("level %d of version %s", c.Level, c.Version)}
	}),
	untold[FinishPack](byIndexing),
	alwaysTold(func(_ *txn, c *AcceptListing) Event {
		return Event{Action: "connection.listing_accepted", TargetType: "connection", Target: c.Connection}
	}),
	untold[FinishListing](byIndexing),
	alwaysTold((*txn).accountEvent),
	alwaysTold(func(t *txn, c *DeleteAccount) Event {
		return Event{Action: "user.deleted", TargetType: "user", Target: c.ID, Message: t.emailOf(c.ID)}
	}),
	told(func(_ *txn, c *SetGrants) Event {
		return Event{Action: "permissions.changed", TargetType: "user", Target: c.Account,
			Message: "by " + c.Source + ": " + Counted(len(c.Add), "repository", "repositories") + " added, " + fmt.Sprint(len(c.Remove)) + " taken away"}
	}),
	alwaysTold(func(_ *txn, c *PutSession) Event {
		e := Event{Action: "session.created", TargetType: "user", Target: c.Session.Account, Message: "session " + c.Session.ID + " by " + c.Session.Method}
		if c.Session.Account == "" {
			e.TargetType, e.Target = "api_key", c.Session.Key
		}
		return e
	}),
	alwaysTold(func(t *txn, c *EndSessions) Event {
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
	untold[TouchSessions](byUse),
	alwaysTold(func(_ *txn, c *SetPassword) Event {
		action := "user.password_changed"
		if c.Hash == "" {
			action = "user.password_removed"
		}
		return Event{Action: action, TargetType: "user", Target: c.Account}
	}),
	alwaysTold(func(_ *txn, c *PutLink) Event {
		return Event{Action: "user.link_created", TargetType: "user", Target: c.Link.Account, Message: "link " + c.Link.ID}
	}),
	alwaysTold(func(_ *txn, c *LinkIdentity) Event {
		return Event{Action: "account.linked", TargetType: "user", Target: c.Identity.Account, Message: c.Identity.Provider + " " + c.Identity.Login}
	}),
	alwaysTold(func(_ *txn, c *UnlinkIdentity) Event {
		return Event{Action: "account.unlinked", TargetType: "user", Target: c.Account, Message: c.Provider}
	}),
	alwaysTold(func(_ *txn, c *Join) Event {
		return Event{Action: "user.created", TargetType: "user", Target: c.Account.ID, Message: c.Account.Email + ", " + c.Account.State.String() + ", by " + c.Identity.Provider}
	}),
	untold[FinishRepoAccess](byHost),
	untold[FinishReaderAccess](byHost),
	alwaysTold(func(_ *txn, c *RefuseReader) Event {
		return Event{Action: "permissions.cleared", TargetType: "reader", Target: c.Site + " " + c.Subject, Message: "the host refuses them"}
	}),
	untold[AgeAccess](byHost),
	told(func(_ *txn, c *PutHostToken) Event {
		return Event{Action: "account.authorized", TargetType: "user", Target: c.Account, Message: "to ask " + c.Token.Site + " in their name"}
	}),
	untold[SayPermissionSync](byNodes),
	untold[Attribute]("says who makes the changes behind it"),
	alwaysTold(func(_ *txn, c *NoteEvent) Event {
		return Event{Action: c.Action, TargetType: c.TargetType, Target: c.Target, Message: c.Message}
	}),
	alwaysTold(func(_ *txn, c *PutConsent) Event {
		return Event{
			Action:     "oauth.consented",
			Actor:      Actor{ID: c.Consent.Account},
			TargetType: "oauth_grant",
			Target:     c.Consent.ID,
			Message:    c.Consent.Name + " at " + c.Consent.Host,
		}
	}),
	untold[RotateConsent](byUse),
	alwaysTold(func(_ *txn, c *EndConsents) Event {
		if c.Account != "" {
			return Event{Action: "oauth.all_revoked", TargetType: "user", Target: c.Account}
		}
		return Event{Action: "oauth.revoked", TargetType: "oauth_grant", Target: strings.Join(c.IDs, " ")}
	}),
	untold[DropSecrets](byNodes),
	untold[BeginTurn](byAsking),
	untold[EndTurn](byAsking),
	told(func(_ *txn, c *ChangeThread) Event {
		e := Event{Action: "chat.changed", TargetType: "chat", Target: c.Thread, Message: "private"}
		if c.Public {
			e.Message = "public"
		}
		return e
	}),
	told(func(_ *txn, c *DeleteThread) Event {
		return Event{Action: "chat.deleted", TargetType: "chat", Target: c.Thread}
	}),
	told(func(_ *txn, c *ForkThread) Event {
		return Event{Action: "chat.duplicated", TargetType: "chat", Target: c.Thread, Message: "of " + c.From}
	}),
	alwaysTold(func(_ *txn, c *SealConfig) Event {
		return Event{Action: "config.sealed", TargetType: "configuration", Target: c.Hash, Message: "under the newest cluster key"}
	}),
	told(func(t *txn, c *CancelJob) Event { return t.jobEvent("job.canceled", c.Kind, c.Subject) }),
}

var rulesByType = func() map[reflect.Type]eventRule {
	m := map[reflect.Type]eventRule{}
	for _, r := range eventRules {
		m[r.typ] = r
	}
	return m
}()

// ruleOf is the rule of a command; the empty one where there is none.
func ruleOf(c Command) eventRule { return rulesByType[reflect.TypeOf(c).Elem()] }

// accountEvent tells what a PutAccount does: the first of these that holds.
func (t *txn) accountEvent(c *PutAccount) Event {
	a, old := &c.Account, t.accounts.Get(c.Account.ID)

	action := "user.changed"
	switch {
	case old == nil:
		action = "user.created"

	// A change of state tells more than one of the role that comes with it.
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
