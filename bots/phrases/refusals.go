package phrases

import "slices"

// sentences are all that other rooms say, by the room.
var sentences = slices.Concat(said, planner, refusals, unknowns())

// kinds are what a name can be one of; see [store.Unknown], whose sentence
// about each is in the list.
var kinds = []sentence{
	{"server", "服务器", "伺服器"},
	{"server that wants a credential of yours", "需要你的凭据的服务器", "需要你的憑證的伺服器"},
	{"agent", "助手", "助手"},
	{"model", "模型", "模型"},
	{"setting", "设置项", "設定項目"},
	{"setting of a channel", "频道设置项", "頻道設定項目"},
	{"active token", "有效的令牌", "有效的權杖"},
	{"group", "组", "群組"},
	{"user", "用户", "使用者"},
}

func unknowns() []sentence {
	out := make([]sentence, len(kinds))
	for i, k := range kinds {
		out[i] = sentence{k.english + ` "%s" not found`, "找不到" + k.simplified + "“%s”", "找不到" + k.traditional + "「%s」"}
	}
	return out
}

// nearest stands behind any of them that comes near to a name that is there.
var nearest = sentence{"; did you mean %s?", "；你是不是想用 %s？", "；你是不是想用 %s？"}

// refusals are why what a person wrote, pressed or filled in did not work. A
// "%s" is what they gave.
var refusals = []sentence{
	// daemon: words
	{`grant "%s" not found`, "你没有编号为 %s 的长期答复", "你沒有編號為 %s 的長期答覆"},
	{"refused: the setting %s is the system's, not yours", "%s 是系统设置，不属于个人", "%s 是系統設定，不屬於個人"},
	{"invalid setting: %s is the system's, and nobody has a value of their own", "%s 是系统设置，不能设置个人值", "%s 是系統設定，不能設定個人的值"},
	{"invalid: write tokens, tokens new [NAME], or tokens revoke NAME", "请写 `tokens`、`tokens new [NAME]` 或 `tokens revoke NAME`", "請寫 `tokens`、`tokens new [NAME]` 或 `tokens revoke NAME`"},
	{`token "%s" already exists: choose another name, or revoke that one`, "令牌“%s”已存在：请换一个名称，或撤销原来的令牌", "權杖「%s」已存在：請換一個名稱，或撤銷原來的權杖"},
	{`invalid token name "%s": use 1 to 63 letters, digits, dots, dashes or underscores`, "令牌名称“%s”无效：请使用 1 至 63 个字母、数字、点、连字符或下划线", "權杖名稱「%s」無效：請使用 1 至 63 個字母、數字、點、連字號或底線"},
	{"invalid: %s wants several credentials; write credentials connect %s and one of %s", "%s 需要多个凭据；请写 `credentials connect %s`，后接其中一个：%s", "%s 需要多個憑證；請寫 `credentials connect %s`，後接其中一個：%s"},
	{`credential of yours for "%s" not found`, "你没有“%s”的凭据", "你沒有「%s」的憑證"},
	{`credential "%s" of %s not found`, "%[2]s 不需要名为“%[1]s”的凭据", "%[2]s 不需要名為「%[1]s」的憑證"},
	{`invalid language "%s": use %s`, "语言“%s”无效：可用 %s", "語言「%s」無效：可用 %s"},
	{"invalid servers: some of them, or the default, not both", "服务器无效：选择其中一些或默认值，不能同时选择", "伺服器無效：選擇其中一些或預設值，不能同時選擇"},
	{`invalid user "%s": several have that name; say which by id: %s`, "有多个用户名为“%s”；请用编号指明：%s", "有多個使用者名為「%s」；請用編號指明：%s"},
	{`invalid audience "%s": use all, group:G or user:U`, "“%s”无效：可用 all、group:G 或 user:U", "「%s」無效：可用 all、group:G 或 user:U"},

	// store: what a setting takes
	{`invalid value "%s" for %s: want %v`, "%[2]s 的值“%[1]s”无效；应为：%[3]v", "%[2]s 的值「%[1]s」無效；應為：%[3]v"},
	{"true or false", "true 或 false", "true 或 false"},
	{"a whole number from %s to %s", "%s 至 %s 的整数", "%s 至 %s 的整數"},
	{"one of %s", "%s 之一", "%s 其中之一"},
	{"the name of a time zone, such as Europe/Berlin or UTC, or auto", "时区名称（如 Europe/Berlin 或 UTC）或 auto", "時區名稱（如 Europe/Berlin 或 UTC）或 auto"},
	{"at most 64 KiB of text", "不超过 64 KiB 的文本", "不超過 64 KiB 的文字"},

	// store: who approves, who administers
	{`invalid approvers "%s": %v`, "审批人“%s”无效：%v", "核准人「%s」無效：%v"},
	{"write how many, from 1 to %s, such as 2 of group:ops", "人数应为 1 至 %s，例如 2 of group:ops", "人數應為 1 至 %s，例如 2 of group:ops"},
	{`"%s" is none of requester, admins, channel-admins, channel, user:U and group:G`, "“%s”不是 requester、admins、channel-admins、channel、user:U 或 group:G", "「%s」不是 requester、admins、channel-admins、channel、user:U 或 group:G"},
	{"more than %s names", "名称超过 %s 个", "名稱超過 %s 個"},
	{"more than %s bytes", "超过 %s 字节", "超過 %s 位元組"},
	{"that is nobody", "这样就没有人了", "這樣就沒有人了"},
	{"it names %s, and %s must say yes", "只列出了 %s 人，却需要 %s 人批准", "只列出了 %s 人，卻需要 %s 人核准"},
	{"invalid channel: more than %s names", "频道设置无效：名称超过 %s 个", "頻道設定無效：名稱超過 %s 個"},
	{`invalid admin "%s": write user:U or group:G`, "管理员“%s”无效：请写 user:U 或 group:G", "管理員「%s」無效：請寫 user:U 或 group:G"},

	// store: codes that join accounts
	{"invalid code: it has %s letters and digits, such as ABCD-EFGH-JKLM", "代码无效：应为 %s 个字母和数字，例如 `ABCD-EFGH-JKLM`", "代碼無效：應為 %s 個字母和數字，例如 `ABCD-EFGH-JKLM`"},
	{"code not found, or used before", "代码不存在或已被使用", "代碼不存在或已被使用"},
	{"invalid code: it is your own; give it where you come in as somebody else", "这是你自己的代码；请在你以另一个身份使用 nize 的地方输入", "這是你自己的代碼；請在你以另一個身分使用 nize 的地方輸入"},
	{"code expired: make another one", "代码已过期；请重新获取一个", "代碼已逾期；請重新取得一個"},
	{"refused: %s wrong codes in a row; try again in %v", "已连续输入 %s 个错误代码；请在 %v后重试", "已連續輸入 %s 個錯誤代碼；請在 %v後再試"},
	{"refused: one of the two is disabled", "两个用户中有一个已停用", "兩個使用者中有一個已停用"},
	{"refused: %s is disabled", "%s 已停用", "%s 已停用"},
	{"refused: it is the last active admin; make another one first", "这是最后一位管理员；请先设置另一位", "這是最後一位管理員；請先設定另一位"},

	// mcp and bots: presses
	{`call "%s" not found`, "找不到调用 %s", "找不到呼叫 %s"},
	{"invalid: write %s and the id of a call: it stands on the card, and approvals lists it", "请写 `%s` 加调用编号：编号见卡片，`approvals` 也会列出", "請寫 `%s` 加呼叫編號：編號請見卡片，`approvals` 也會列出"},
	{"invalid call id", "调用编号无效", "呼叫編號無效"},
	{"invalid dialog", "此对话框已失效，请重新打开", "此對話方塊已失效，請重新開啟"},
	{"the tool's form changed: changed meanwhile", "此工具的表单已更改，请重新打开", "此工具的表單已變更，請重新開啟"},
	{"reading conversation %s: not found", "找不到对话 %s", "找不到對話 %s"},
	{"refused: there is nothing to share", "没有可以分享的内容", "沒有可以分享的內容"},
	{"refused: there is nothing of yours to share", "没有属于你的可分享内容", "沒有屬於你的可分享內容"},
	{"it was shared: already decided", "已经分享过了", "已經分享過了"},
	{"sharing an answer: refused here", "这里不能分享", "這裡不能分享"},
	{"refused: it is not for who asked to say yes", "发起人自己的批准不计入", "發起人自己的核准不計入"},
	{"the same person said yes before: already decided", "你已经批准过了", "你已經核准過了"},
	{"call %s: refused: what was asked was erased", "无法重新发起调用 %s：请求内容已被删除", "無法重新發起呼叫 %s：要求內容已被刪除"},
	{"the requester of call %s is disabled: refused", "调用 %s 的发起人已停用", "呼叫 %s 的發起人已停用"},
	{"the token of call %s is no longer valid: refused", "调用 %s 使用的令牌已失效", "呼叫 %s 使用的權杖已失效"},
	{`tool "%s" not found; search with discover_tools`, "找不到工具“%s”", "找不到工具「%s」"},

	// mcp: arguments and standing answers
	{"arguments of %s are not valid JSON: %v", "%s 的参数不是有效的 JSON：%v", "%s 的引數不是有效的 JSON：%v"},
	{`duplicate key "%s"`, "键“%s”重复", "鍵「%s」重複"},
	{"unexpected end of JSON input", "内容不完整", "內容不完整"},
	{"nested deeper than %s", "嵌套超过 %s 层", "巢狀超過 %s 層"},
	{`arguments of %s must be a JSON object, such as {"name": "value"}`, `%s 的参数应为 JSON 对象，例如 {"name": "value"}`, `%s 的引數應為 JSON 物件，例如 {"name": "value"}`},
	{unfit, "参数不符合 %s 的定义：%s", "引數不符合 %s 的定義：%s"},
	{"the arguments are %s bytes; a call that needs a yes may have %s (approvals.max_arguments)", "参数共 %s 字节；需要审批的调用最多 %s 字节（approvals.max_arguments）", "引數共 %s 位元組；須核准的呼叫最多 %s 位元組（approvals.max_arguments）"},
	{"%s calls of yours wait for a yes already; decide those first: nizectl approvals list", "你已有 %s 个调用在等待批准；请先处理：nizectl approvals list", "你已有 %s 個呼叫在等待核准；請先處理：nizectl approvals list"},
	{"it needs a yes (%v), which %v: it is for %v; an admin can change who decides", "需要审批（%v），但%v；可审批的人：%v。管理员可以更改审批人", "需要核准（%v），但%v；可核准的人：%v。管理員可以變更核准人"},
	{"nobody could give now", "目前没有人可以审批", "目前沒有人可以核准"},
	{"only %s of %s could give now", "所需的 %[2]s 人中目前只有 %[1]s 人可以审批", "所需的 %[2]s 人中目前只有 %[1]s 人可以核准"},
	{"invalid expiry: it is in the past", "有效期已过", "有效期限已過"},
	{`invalid scope "%s": use me, channel or everywhere`, "范围“%s”无效：可用 `me`、`channel` 或 `everywhere`", "範圍「%s」無效：可用 `me`、`channel` 或 `everywhere`"},
	{"invalid scope: this conversation is in no channel", "此对话不在任何频道中", "此對話不在任何頻道中"},
	{"invalid pattern: a tool is denied whole", "始终拒绝针对整个工具，不能限定参数", "一律拒絕針對整個工具，不能限定引數"},
	{"invalid argument pattern: more than %s bytes", "参数模式超过 %s 字节", "引數模式超過 %s 位元組"},
	{`invalid argument pattern: want a JSON object such as {"path":"/srv/docs/*"}`, `参数模式无效：应为 JSON 对象，例如 {"path":"/srv/docs/*"}`, `引數模式無效：應為 JSON 物件，例如 {"path":"/srv/docs/*"}`},

	// states, as a card and a list say them
	{"waiting for a yes", "等待批准", "等待核准"},
	{"approved, about to run", "已批准，即将运行", "已核准，即將執行"},
	{"planned", "已计划", "已計劃"},
	{"expired, nobody answered", "已过期，无人审批", "已逾期，無人核准"},
	{"active", "有效", "有效"},
	{"revoked", "已撤销", "已撤銷"},
}
