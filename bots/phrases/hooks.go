package phrases

// The texts about a person's own hooks, in the chats.
const (
	AboutHooks    Key = "what runs around your calls, and hooks of your own"
	HooksHead     Key = "What runs before and after your calls, in this order. Yours run inside those of admins, which run first and last."
	HooksHow      Key = "`%[1]shooks add NAME TYPE [SERVER] [CONFIG]` sets one for your own calls, `hooks off NAME` and `hooks on NAME` switch it, `hooks remove NAME` removes it. `TYPE`: `%[2]s`. For example: `%[3]s`" // prefix, types, example
	HookLine      Key = "`%s`: %s\x04hook"                                                                                                                                                                                // name, effect and origin
	HookAdded     Key = "Your hook is set. %s"                                                                                                                                                                            // its line
	HookGone      Key = "Your hook `%s` is removed."                                                                                                                                                                      // name
	HookAudits    Key = "keeps a record"
	HookAccess    Key = "decides which tools may be used"
	HookLimits    Key = "limits how often"
	HookSanitizes Key = "changes or forbids arguments"
	HookTruncates Key = "shortens results"
	HookRedacts   Key = "removes keys from results"
	HookExecs     Key = "calls a program"
	HookAsks      Key = "calls a service"
	HookAllTools  Key = "all tools"
	HookToolsOf   Key = "all tools of %s" // server
	HookBuiltIn   Key = "built in"
	HookOfAdmin   Key = "set by an admin"
	HookYours     Key = "yours\x04hook"
	HookOff       Key = "switched off\x04hook"
)

// hookWords are the texts about hooks.
var hookWords = map[Key]string{
	"Hooks": "钩子",
	"what runs around your calls, and hooks of your own": "你的调用前后运行的内容，以及你自己的钩子",
	"`%[1]shooks add NAME TYPE [SERVER] [CONFIG]` sets one for your own calls, `hooks off NAME` and `hooks on NAME` switch it, `hooks remove NAME` removes it. `TYPE`: `%[2]s`. For example: `%[3]s`": "`%[1]shooks add NAME TYPE [SERVER] [CONFIG]` 为你自己的调用设置一个钩子，`hooks off NAME` 和 `hooks on NAME` 关闭和开启它，`hooks remove NAME` 移除它。`TYPE`：`%[2]s`。例如：`%[3]s`",
	"`%s`: %s\x04hook":           "`%s`：%s",
	"Your hook is set. %s":       "你的钩子已设置。%s",
	"Your hook `%s` is removed.": "你的钩子 `%s` 已移除。",
	"all tools of %s":            "%s 的所有工具",
	"yours\x04hook":              "你的",
	"switched off\x04hook":       "已关闭",
	"invalid: write `hooks`, `hooks add NAME TYPE [SERVER] [CONFIG]`, or `hooks remove`, `on` or `off` with a name":                "无效：请写 `hooks`、`hooks add NAME TYPE [SERVER] [CONFIG]`，或 `hooks remove`、`on`、`off` 加上名称",
	"invalid: the configuration of a hook is a JSON object, such as `%s`":                                                          "无效：钩子的配置是 JSON 对象，例如 `%s`",
	"invalid name of a hook “%s”: use 1 to 63 of `a-z`, `0-9` and `-`, not starting with `-`, and not `native`, `agent` or `nize`": "钩子名称“%s”无效：请使用 1 到 63 个 `a-z`、`0-9` 和 `-`，不能以 `-` 开头，也不能是 `native`、`agent` 或 `nize`",
	"invalid config of hook %s: %w": "钩子 `%s` 的配置无效：%w",
	"there is no field %s":          "没有字段 `%s`",
	"the field “%s” can't be “%s”":  "字段“%s”不能是“%s”",
	`want {"rules":[{"pointer":"/x","action":"strip|default|redact|forbid"}]}`:              `应为 {"rules":[{"pointer":"/x","action":"strip|default|redact|forbid"}]}`,
	`want {"calls":N,"per":"1m","by":["user","server","tool"]}: 1 to %d calls, at most 24h`: `应为 {"calls":N,"per":"1m","by":["user","server","tool"]}：1 到 %d 次调用，最长 24h`,
	`want {"bytes":N,"items":N}: bytes from %d on, items from 1 on, at least one of them`:   `应为 {"bytes":N,"items":N}：bytes 不小于 %d，items 不小于 1，至少给出其中之一`,
	"rule %d is null": "规则 %d 为空",
	"rule %d: %w":     "规则 %d：%w",
	"pointer “%s”: want a JSON pointer such as `/name` or `/list/0`": "指针“%s”：应为 JSON 指针，例如 `/name` 或 `/list/0`",
	"pattern “%s”: it is not a regular expression":                   "模式“%s”：不是正则表达式",
	"`%s` takes no value":                                        "`%s` 不带值",
	"`default` needs a value, and no pattern":                    "`default` 需要一个值，且不能有模式",
	"`redact` with a pattern needs a text as value":              "`redact` 带模式时，值必须是文本",
	"action “%s”: want `strip`, `default`, `redact` or `forbid`": "操作“%s”：应为 `strip`、`default`、`redact` 或 `forbid`",
	"What runs before and after your calls, in this order. Yours run inside those of admins, which run first and last.": "在你的调用前后运行的内容，按此顺序。你自己的钩子在管理员的钩子之内运行，最先和最后决定的总是管理员的钩子。",
	"keeps a record":                       "记录使用情况",
	"decides which tools may be used":      "决定可以使用哪些工具",
	"limits how often":                     "限制频率",
	"changes or forbids arguments":         "更改或禁止参数",
	"shortens results":                     "缩短结果",
	"removes keys from results":            "从结果中去掉密钥",
	"calls a program":                      "询问一个程序",
	"calls a service":                      "询问一项服务",
	"all tools":                            "所有工具",
	"all tools of {server}":                "{server} 的所有工具",
	"built in":                             "内置",
	"set by an admin":                      "由管理员设置",
	"Enabled":                              "已启用",
	"Added.":                               "已添加。",
	"Add a hook":                           "添加钩子",
	"Name of a new hook":                   "新钩子的名称",
	"What it does":                         "作用",
	"Only on this server":                  "仅限此服务器",
	"every server":                         "每个服务器",
	"Configuration, as JSON":               "配置（JSON）",
	"The configuration is not valid JSON.": "配置不是有效的 JSON。",
	"there are %d hooks, and one person may have %d (the setting limits.user.hooks); remove one first": "已有 %d 个钩子，每人最多 %d 个（设置 limits.user.hooks）；请先移除一个",
	"invalid config: %d bytes, and a person's hook has at most %d":                                     "配置无效：%d 字节，个人钩子的配置最多 %d 字节",
	"only an admin may set a hook of scope %s; your own have the scope user or user_server":            "只有管理员可以设置范围为 %s 的钩子；你自己的钩子范围为 user 或 user_server",
	"only an admin may set a hook of type %s; your own may be of type %s":                              "只有管理员可以设置类型为 %s 的钩子；你自己的可以是 %s",
	"Hooks per person": "每人的钩子",
	"hooks that one person may set for their own calls; 0 lets none be set":                "一个人可以为自己的调用设置的钩子数；0 表示不能设置",
	"hook %s: already exists; change it: nizectl hooks edit %s":                            "钩子 %s：已存在；要更改：nizectl hooks edit %s",
	"your own hook runs around your own calls only; an admin can set one for other people": "你自己的钩子只用于你自己的调用；管理员可以为其他人设置",
}
