package layout

import (
	"github.com/shoalsearch/shoal/cluster/catalog"
)

var errorTemplate = Parse(templates, "templates/error.html")

// ShowError answers with an error page. The title says what kind of error it is, the message what
// to do. wait is the number of seconds after which to retry; 0 if that does not help.
func (v *Visit) ShowError(status int, message string, wait int) error {
	// Drop what the page had begun to answer.
	v.Status, v.Stream = status, nil

	// Errors with another status share one title.
	title := map[int]string{
		200: "Nothing here yet", 400: "That was not understood", 403: "Not allowed", 404: "There is no such page", 429: "Too much at once",
		503: "Not available now", 504: "That took too long",
	}[status]
	if title == "" {
		title = "Something went wrong"
	}
	signIn := "" // address of the sign-in page, for a guest whom an account could help
	if status == 403 && v.Viewer.Role == catalog.RoleGuest {
		signIn = v.signIn()
	}
	return v.Show(Head{Title: title, Page: "error"}, errorTemplate, struct {
		Title, Message string
		Wait           int
		SignIn         string
	}{title, message, wait, signIn})
}
