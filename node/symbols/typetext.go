package symbols

import (
	"go/ast"
	"strconv"
)

// typeText returns a type without package names.
func typeText(e ast.Expr) string {
	switch t := e.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.SelectorExpr:
		return t.Sel.Name
	case *ast.StarExpr:
		return "*" + typeText(t.X)
	case *ast.ParenExpr:
		return typeText(t.X)
	case *ast.ArrayType:
		return "[]" + typeText(t.Elt)
	case *ast.Ellipsis:
		return "..." + typeText(t.Elt)
	case *ast.MapType:
		return "map[" + typeText(t.Key) + "]" + typeText(t.Value)
	case *ast.ChanType:
		return "chan" + strconv.Itoa(int(t.Dir)) + " " + typeText(t.Value)
	case *ast.IndexExpr:
		return typeText(t.X) + "[" + typeText(t.Index) + "]"
	case *ast.IndexListExpr:
		return typeText(t.X) + "[]"
	case *ast.InterfaceType:
		if len(t.Methods.List) == 0 {
			return "any"
		}
		return "interface"
	case *ast.FuncType:
		return "func(" + signatureOfFunc(t).types
	}
	return "struct"
}
