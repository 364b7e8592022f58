package node

import (
	"context"
	"fmt"

	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/mail"
)

// wireMail has links sent by a mail server; nil for none.
func (n *Node) wireMail(sender *mail.Sender) {
	if sender == nil {
		return
	}
	n.post = sender.Send
	n.Passwords.SendBy(func(ctx context.Context, l *account.NewLink) error {
		err := sender.Send(ctx, n.letterOf(l))
		result := "sent"
		if err != nil {
			result = "failed"
			n.opt.Log.Error("a letter with a link could not be sent", "account", l.User.ID, "err", err)
		}
		n.metrics.letters.WithLabelValues(result).Inc()
		return err
	})
}

// letterOf returns the mail for somebody who is invited or forgot a password.
func (n *Node) letterOf(l *account.NewLink) mail.Letter {
	return mail.Letter{
		To:      l.User.Email,
		Subject: "Sign in to Shoal",
		Text: fmt.Sprintf("An owner of %s made this link for you:\n\n%s/join?link=%s\n\nChoose a password there. The link is good once, until %s.\n\nYou did not expect this? Then do nothing.\n",
			n.BaseURL(), n.BaseURL(), l.Token, l.Expires.UTC().Format("2 January 2006 15:04 UTC")),
	}
}
